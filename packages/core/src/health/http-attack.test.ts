import { once } from 'node:events';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { parseIp } from '../model/ip/address.ts';
import type { Port } from '../model/ip/port.ts';
import { freePort } from '../testing/free-port.ts';
import { ManualClock } from '../testing/manual-clock.ts';
import { seconds } from '../base/time.ts';
import { textAnswer, type HttpReply } from './http-answer.ts';
import { createHttpListener, type HttpListener, placeOf } from './http-listener.ts';

// Hostile or broken clients against the real listener. The tests count calls of the handler, because times depend on
// the machine.

const request = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
/** One read of a socket takes at most 64 KiB. */
const inOneRead = Math.floor(65_536 / request.length);

const limits = { connections: 1000, connectionsOfNode: 100, requestTime: seconds(5), patience: seconds(60) };

interface Bench {
  readonly port: Port;
  /** Paths of the handler's requests, in order. */
  readonly asked: string[];
  /** A client that sends `text` and reads nothing. */
  send(text: string): Promise<Socket>;
  /** Answers of `/livez`, one after the other. */
  probe(times?: number): Promise<void>;
}

async function serve(
  answer: (path: string) => HttpReply | Promise<HttpReply>,
  listener: HttpListener = createHttpListener(),
): Promise<Bench> {
  const port = await freePort();
  const asked: string[] = [];
  const target = { ipFamily: 'IPv4', address: parseIp('127.0.0.1'), port } as const;
  const socket = await listener.listen(target, ({ path }) => {
    asked.push(path);
    return path === '/livez' ? textAnswer(200, 'ok') : answer(path);
  });
  onTestFinished(() => socket[Symbol.asyncDispose]());
  const probe = async (times = 20): Promise<void> => {
    for (let count = 0; count < times; count++) expect(await statusOf(port)).toBe(200);
  };
  return { port, asked, send: (text) => send(port, text), probe };
}

async function send(port: Port, text: string): Promise<Socket> {
  const client = connect(port, '127.0.0.1');
  client.on('error', () => undefined);
  onTestFinished(() => void client.destroy());
  await once(client, 'connect');
  client.write(text);
  return client;
}

function statusOf(port: Port): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/livez', agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
    }).on('error', reject);
  });
}

async function textFrom(client: Socket): Promise<string> {
  let text = '';
  for await (const chunk of client as AsyncIterable<Buffer>) text += chunk.toString();
  return text;
}

test('no answers are made for a client that does not read', async () => {
  const { asked, send: sendTo, probe } = await serve(() => textAnswer(200, 'x'.repeat(500_000)));
  await Promise.all(Array.from({ length: 4 }, () => sendTo(request.repeat(4 * inOneRead))));
  await probe();
  const unread = asked.filter((path) => path === '/healthz').length;
  expect(unread).toBeGreaterThan(0);
  expect(unread).toBeLessThan(100); // as many as fit into the kernel's buffers
});

test('no answers are made for a client that has gone', async () => {
  const { asked, send: sendTo, probe } = await serve(() => textAnswer(200, 'ok'));
  const client = await sendTo(request.repeat(inOneRead));
  await once(client, 'data');
  client.resetAndDestroy();
  await probe();
  expect(asked.filter((path) => path === '/healthz').length).toBeLessThan(100);
});

test('one request has its turn between the many of others', async () => {
  const { asked, port, send: sendTo } = await serve(() => textAnswer(200, 'ok'));
  const clients = await Promise.all(Array.from({ length: 8 }, () => sendTo('')));
  const prober = await sendTo('');
  clients.forEach((client) => client.resume().write(request.repeat(inOneRead)));
  prober.write(request.replace('healthz', 'livez'));
  await once(prober, 'data');
  expect(asked.indexOf('/livez')).toBeLessThan(100);
  expect(await statusOf(port)).toBe(200);
});

test('a client gets its pipelined answers in order, however slowly they are made', async () => {
  const { send: sendTo } = await serve(async (path) => {
    await new Promise((resolve) => setImmediate(resolve));
    return textAnswer(200, `<${path}>`);
  });
  const requests = ['/a', '/b', '/c'].map(
    (path) => `PUT ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n\r\n\r\n5`,
  );
  const client = await sendTo(requests.join(''));
  client.end(request);
  const text = await textFrom(client);
  expect(text.match(/<.*?>/g)).toEqual(['</a>', '</b>', '</c>', '</healthz>']);
});

test('requests with bodies wait for the answers before them, too', async () => {
  const { asked, send: sendTo, probe } = await serve(() => new Promise<HttpReply>(() => undefined));
  await sendTo('PUT /v HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello'.repeat(500));
  await probe();
  expect(asked.filter((path) => path === '/v')).toHaveLength(1);
});

test('input that waits for its turn is bounded, and small requests get in beside it', async () => {
  const many = createHttpListener({ ...limits, connectionsOfNode: 1000 });
  const { asked, send: sendTo, probe } = await serve(() => new Promise<HttpReply>(() => undefined), many);
  const firstCut = Promise.withResolvers<void>();
  let cut = 0;
  const open = async (): Promise<void> => {
    const client = await sendTo(request.repeat(inOneRead));
    client.resume().once('close', () => (cut++, firstCut.resolve()));
  };
  await Promise.all(Array.from({ length: 300 }, open));
  await firstCut.promise;
  await probe();
  expect(300 - cut).toBeGreaterThan(100); // 8 MiB in chunks of at most 64 KiB
  expect(asked.filter((path) => path === '/healthz').length).toBeLessThanOrEqual(300);
});

test('a client gets an answer beside any number of half-sent requests', async () => {
  const { send: sendTo, probe } = await serve(() => textAnswer(200, 'ok'));
  await Promise.all(Array.from({ length: 1010 }, () => sendTo('GET /healthz HTTP/1.1\r\nHo')));
  await probe();
});

test('a request that came with the body of the one before has all the time it needs', async () => {
  const clock = new ManualClock();
  const [early, late] = [Promise.withResolvers<HttpReply>(), Promise.withResolvers<HttpReply>()];
  const {
    asked,
    send: sendTo,
    probe,
  } = await serve((path) => (path === '/v' ? early.promise : late.promise), createHttpListener(limits, clock));
  const client = await sendTo(`PUT /v HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello${request}`);
  await probe();
  expect(asked.slice(0, 2)).toContain('/v');
  early.resolve(textAnswer(200, 'early'));
  expect(String(await once(client, 'data'))).toMatch(/early$/);
  await clock.advance(60_000);
  late.resolve(textAnswer(200, 'late'));
  expect(String(await once(client, 'data'))).toMatch(/late$/);
});

test.each([
  ['nothing', ''],
  ['half a request', 'GET / HTTP/1.1\r\nHo'],
  ['half a body', 'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n123'],
])('a client that sends %s is cut after five seconds', async (_, text) => {
  const clock = new ManualClock();
  const { send: sendTo, probe } = await serve(() => textAnswer(200, 'ok'), createHttpListener(limits, clock));
  const client = await sendTo(text);
  const closed = once(client.resume(), 'end');
  await probe(); // by now its bytes have arrived
  await clock.advance(4999);
  expect(client.readableEnded).toBe(false);
  await clock.advance(1);
  await closed;
  await probe(1);
});

test.each([
  ['127.0.0.1', '127.0.0.1', 'node'],
  ['127.0.0.9', '127.0.0.1', 'node'],
  ['::ffff:127.0.0.1', '::ffff:127.0.0.1', 'node'],
  ['::1', '::1', 'node'],
  ['::ffff:192.0.2.1', '::ffff:192.0.2.1', 'node'],
  ['192.0.2.1', '192.0.2.1', 'node'],
  ['10.244.0.7', '192.0.2.1', 'elsewhere'],
  ['::ffff:10.244.0.7', '::ffff:192.0.2.1', 'elsewhere'],
  [undefined, undefined, 'elsewhere'],
] as const)('a client with the address %s that is connected to %s is on: %s', (remoteAddress, localAddress, place) => {
  expect(placeOf({ remoteAddress, localAddress })).toBe(place);
});
