import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { HostError, type LoopbackNodePort, millis, parseIp, parsePort, systemClock } from '@switchyard/core';
import { endpoint, freePort, ManualClock, MemoryLogger } from '@switchyard/core/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Connections, type TcpListener, tcpNetwork } from './connections.ts';
import { EndpointChoice } from './endpoint-choice.ts';

// Real sockets: the proxy listens on 127.0.0.1, endpoints on 127.0.0.2 and above.

const address = parseIp('127.0.0.1');
let connections: Connections;
let listeners: TcpListener[];
let servers: Server[];
let logger: MemoryLogger;

beforeEach(() => {
  logger = new MemoryLogger();
  connections = new Connections({ network: tcpNetwork, limit: 10, clock: systemClock, logger });
  listeners = [];
  servers = [];
});

afterEach(async () => {
  await connections[Symbol.asyncDispose]();
  for (const listener of listeners) listener.close();
  for (const server of servers) server.close();
});

interface Place {
  readonly ip: string;
  readonly port: number;
}

/** A server of an endpoint, and the sockets it has accepted. */
async function serve(ip: string, answer: (socket: Socket) => void): Promise<Place & { readonly sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    sockets.push(socket);
    answer(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, ip, resolve));
  servers.push(server);
  const { port } = server.address() as AddressInfo; // it listens on TCP
  return { ip, port, sockets };
}

const says = (what: string) => (socket: Socket) => void socket.end(what);

function nodePort(...places: readonly Place[]): LoopbackNodePort {
  const endpoints = places.map(({ ip, port }) => {
    const { address: own, ...conditions } = endpoint(ip);
    return { ...conditions, address: own, port: parsePort(port), isLocal: true };
  });
  return {
    service: 'shop/cart:/TCP' as LoopbackNodePort['service'],
    port: parsePort(30080),
    endpoints,
    sessionAffinity: { kind: 'none' },
  };
}

/** The port of a listener in front of the endpoints; the first is tried first. */
async function front(
  choice: EndpointChoice,
  on: Connections = connections,
): Promise<{ readonly port: number; readonly listener: TcpListener }> {
  const port = await freePort();
  const listener = await tcpNetwork.listen({ address, port }, (client) => on.accept(client, choice));
  listeners.push(listener);
  return { port, listener };
}

const choiceOf = (...places: readonly Place[]): EndpointChoice => {
  let next = 0;
  return new EndpointChoice(nodePort(...places), {
    clock: systemClock,
    random: () => (next++ % places.length) / places.length,
  });
};

/** A client that may not be connected yet: a reset can come first. */
function clientOf(port: number): Socket {
  return connect({ host: '127.0.0.1', port, allowHalfOpen: true }).on('error', () => undefined);
}

async function open(port: number): Promise<Socket> {
  const client = clientOf(port);
  await once(client, 'connect');
  return client;
}

async function ask(port: number): Promise<string> {
  const client = await open(port);
  client.end('hello');
  return text(client);
}

/** `reset`, or how else the connection ended. */
async function endOf(client: Socket): Promise<string> {
  const failed = new Promise<string>((resolve) =>
    client.once('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? '')),
  );
  const closed = new Promise<string>((resolve) => client.once('end', () => resolve('end')));
  client.resume();
  return Promise.race([failed, closed]);
}

async function until(isTrue: () => boolean): Promise<void> {
  for (let round = 0; !isTrue(); round++) {
    if (round > 500) throw new Error('it does not become true');
    await delay(5);
  }
}

test('a client reaches an endpoint, and its answer is whole', async () => {
  const large = 'x'.repeat(3_000_000);
  const { port } = await front(choiceOf(await serve('127.0.0.2', says(large))));
  expect(await ask(port)).toHaveLength(large.length);
  await until(() => connections.size === 0);
});

test('the end of either direction is passed on, and the other one stays open', async () => {
  const place = await serve('127.0.0.2', () => undefined);
  const { port } = await front(choiceOf(place));
  const client = await open(port);
  client.end('question');
  await until(() => place.sockets.length === 1);
  const [server] = place.sockets as [Socket];
  expect(await text(server)).toBe('question');
  server.write('late ');
  await delay(20);
  server.end('answer');
  expect(await text(client)).toBe('late answer');

  const second = await open(port);
  await until(() => place.sockets.length === 2);
  const [, other] = place.sockets as [Socket, Socket];
  other.end('first');
  expect(await text(second)).toBe('first');
  second.end('then');
  expect(await text(other)).toBe('then');
  await until(() => connections.size === 0);
});

test('a reset is passed on, both ways', async () => {
  const place = await serve('127.0.0.2', () => undefined);
  const { port } = await front(choiceOf(place));
  const client = await open(port);
  await until(() => place.sockets.length === 1);
  place.sockets[0]?.resetAndDestroy();
  expect(await endOf(client)).toBe('ECONNRESET');
  const second = await open(port);
  await until(() => place.sockets.length === 2);
  second.resetAndDestroy();
  expect(await endOf(place.sockets[1] as Socket)).toBe('ECONNRESET');
  await until(() => connections.size === 0);
});

describe('connections that are open', () => {
  test('outlive other endpoints and the listener', async () => {
    const echo = (socket: Socket): void => void socket.pipe(socket);
    const choice = choiceOf(await serve('127.0.0.2', echo));
    const { port, listener } = await front(choice);
    const client = await open(port);
    client.write('a');
    expect(String((await once(client, 'data'))[0])).toBe('a');
    choice.update(nodePort(await serve('127.0.0.3', says('new'))));
    expect(await ask(port)).toBe('new');
    client.write('b');
    expect(String((await once(client, 'data'))[0])).toBe('b');
    listener.close();
    expect(await endOf(clientOf(port))).toBe('ECONNREFUSED');
    client.end('c');
    expect(await text(client)).toBe('c');
  });

  test('are reset when the agent stops', async () => {
    const { port } = await front(choiceOf(await serve('127.0.0.2', () => undefined)));
    const client = await open(port);
    await until(() => connections.size === 1);
    await connections[Symbol.asyncDispose]();
    expect(await endOf(client)).toBe('ECONNRESET');
  });
});

describe('an endpoint that cannot be reached', () => {
  test('is followed by the next one', async () => {
    const gone = { ip: '127.0.0.3', port: await freePort('127.0.0.3') };
    const { port } = await front(choiceOf(gone, await serve('127.0.0.2', says('two'))));
    expect(await ask(port)).toBe('two');
  });

  test('as the last one it ends in a reset', async () => {
    const gone = { ip: '127.0.0.3', port: await freePort('127.0.0.3') };
    const { port } = await front(choiceOf(gone));
    expect(await endOf(clientOf(port))).toBe('ECONNRESET');
  });

  test('is given up after 5 s, and three of them end in a reset', async () => {
    const clock = new ManualClock();
    const dialled: string[] = [];
    const dial = (to: { readonly address: string }, signal: AbortSignal): Promise<Socket> => {
      dialled.push(to.address);
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new HostError('host.dial', String(signal.reason))));
      });
    };
    await using silent = new Connections({ network: { dial }, limit: 10, clock, logger });
    const places = [4, 5, 6, 7].map((last) => ({ ip: `127.0.0.${last}`, port: 80 }));
    const { port } = await front(choiceOf(...places), silent);
    const client = await open(port);
    const end = endOf(client);
    await until(() => dialled.length === 1);
    await clock.advance(millis(4999));
    expect(dialled).toEqual(['127.0.0.4']);
    for (const count of [2, 3]) {
      await clock.advance(millis(5000));
      expect(dialled).toHaveLength(count);
    }
    await clock.advance(millis(5000));
    expect(await end).toBe('ECONNRESET');
    expect(dialled).toHaveLength(3);
    expect(clock.sleeping).toBe(0);
  });

  test('is not waited for when the client goes', async () => {
    const clock = new ManualClock();
    let signal: AbortSignal | undefined;
    const dial = (_: unknown, given: AbortSignal): Promise<Socket> =>
      new Promise((__, reject) => {
        signal = given;
        given.addEventListener('abort', () => reject(new HostError('host.dial', 'aborted')));
      });
    await using silent = new Connections({ network: { dial }, limit: 10, clock, logger });
    const { port } = await front(choiceOf({ ip: '127.0.0.4', port: 80 }, { ip: '127.0.0.5', port: 80 }), silent);
    const client = await open(port);
    await until(() => signal !== undefined);
    client.resetAndDestroy();
    await until(() => signal?.aborted === true);
    await until(() => clock.sleeping === 0);
    expect(silent.size).toBe(0);
  });
});

test('above the limit a new connection is reset, others stay, and there is one warning', async () => {
  await using few = new Connections({ network: tcpNetwork, limit: 1, clock: systemClock, logger });
  const place = await serve('127.0.0.2', (socket) => void socket.pipe(socket));
  const { port } = await front(choiceOf(place), few);
  const first = await open(port);
  await until(() => place.sockets.length === 1);
  for (let round = 0; round < 2; round++) expect(await endOf(clientOf(port))).toBe('ECONNRESET');
  expect(logger.transitions).toEqual(['warn too many connections to NodePorts on loopback, new ones are reset']);
  first.end('still here');
  expect(await text(first)).toBe('still here');
  await until(() => few.size === 0);
  const again = await open(port);
  again.end('again');
  expect(await text(again)).toBe('again');
});

test('a port that is taken is refused in words', async () => {
  const { port } = await serve('127.0.0.1', says(''));
  await expect(tcpNetwork.listen({ address, port: parsePort(port) }, () => undefined)).rejects.toMatchObject({
    code: 'host.listen',
    message: expect.stringContaining(`cannot listen on 127.0.0.1:${port}: `) as string,
  });
});
