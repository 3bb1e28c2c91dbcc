import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../testing/manual-clock.ts';
import { MemoryMetrics } from '../testing/memory-metrics.ts';
import { systemClock } from '../base/time.ts';
import { type ApiServerConnection, defaultTls } from './api-server-connection.ts';
import { type JsonRequest, sendJson } from './send-json.ts';

interface Seen {
  readonly line: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

const never = new AbortController().signal;
const seen: Seen[] = [];
let reply: (response: ServerResponse) => void;
let forgotten = 0;
const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
  request.on('end', () => {
    seen.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
    reply(response);
  });
});

beforeEach(async () => {
  seen.length = 0;
  forgotten = 0;
  reply = (response) => response.writeHead(201).end('{"kind":"Event"}');
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(
  () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    }),
);

function connection(path = ''): ApiServerConnection {
  const { port } = server.address() as AddressInfo;
  return {
    url: new URL(`http://127.0.0.1:${port}${path}`),
    tls: defaultTls,
    credentials: { authorization: () => Promise.resolve('Bearer t'), forget: () => void forgotten++ },
  };
}

const send = (request: JsonRequest, signal = never, clock = systemClock): ReturnType<typeof sendJson> =>
  sendJson({ connection: connection('/prefix'), clock, userAgent: 'test' }, request, signal);

describe('a request', () => {
  test.each<[JsonRequest, Partial<Seen>, string | undefined]>([
    [
      { method: 'POST', path: '/x', body: { a: 'ä' } },
      { line: 'POST /prefix/x', body: '{"a":"ä"}' },
      'application/json',
    ],
    [
      { method: 'PATCH', path: '/x/y', body: { a: null } },
      { line: 'PATCH /prefix/x/y', body: '{"a":null}' },
      'application/merge-patch+json',
    ],
    [{ method: 'GET', path: '/x?a=b' }, { line: 'GET /prefix/x?a=b', body: '' }, undefined],
  ])('%j', async (request, expected, contentType) => {
    expect(await send(request)).toEqual({ status: 201, body: '{"kind":"Event"}', retryAfter: undefined });
    expect(seen).toMatchObject([{ ...expected, headers: { authorization: 'Bearer t', 'user-agent': 'test' } }]);
    expect(seen[0]?.headers['content-type']).toBe(contentType);
    expect(forgotten).toBe(0);
  });
});

describe('an answer', () => {
  test('that refuses is an answer; after a 401 credentials are read again', async () => {
    reply = (response) => response.writeHead(401).end('no');
    expect(await send({ method: 'GET', path: '/x' })).toEqual({ status: 401, body: 'no', retryAfter: undefined });
    expect(forgotten).toBe(1);
  });

  test.each([
    ['7', 7000],
    ['9999', 300_000],
    ['Sat, 21 Nov 2026 10:00:00 GMT', undefined],
  ])('says when to come back: %s', async (text, retryAfter) => {
    reply = (response) => response.writeHead(429, { 'retry-after': text }).end();
    expect(await send({ method: 'GET', path: '/x' })).toMatchObject({ status: 429, retryAfter });
  });

  test('that breaks off is none', async () => {
    reply = (response) => {
      response.writeHead(200, { 'content-length': '100' }).write('abc');
      setImmediate(() => response.destroy());
    };
    await expect(send({ method: 'GET', path: '/x' })).rejects.toThrow(
      'GET /x: no answer: aborted; will be tried again',
    );
  });

  test('that does not come is none after 30 s', async () => {
    const clock = new ManualClock();
    const arrived = new Promise<void>((resolve) => {
      reply = () => resolve();
    });
    const answer = send({ method: 'GET', path: '/x' }, never, clock);
    const refused = expect(answer).rejects.toThrow('GET /x: no answer within 30 s; will be tried again');
    await arrived;
    await clock.advance(30_000);
    await refused;
    expect(clock.sleeping).toBe(0);
  });

  test('that is aborted ends at once', async () => {
    const stop = new AbortController();
    reply = () => stop.abort(new Error('stop'));
    await expect(send({ method: 'GET', path: '/x' }, stop.signal)).rejects.toThrow('stop');
  });
});

test('a missing server is reported as such', async () => {
  const gone = connection();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  const answer = sendJson(
    { connection: gone, clock: systemClock, userAgent: 'test' },
    { method: 'GET', path: '/x' },
    never,
  );
  await expect(answer).rejects.toThrow(/^GET \/x: no answer: connect ECONNREFUSED .*; will be tried again$/);
});

test.each<readonly [string, (response: ServerResponse) => void, string]>([
  ['an answer by its status', (response) => response.writeHead(409).end('there already'), '409'],
  ['no answer as an error', (response) => response.destroy(), '<error>'],
])('%s is counted and timed', async (_, answer, code) => {
  reply = answer;
  const metrics = new MemoryMetrics();
  const options = { connection: connection(), clock: systemClock, userAgent: 'test', metrics };
  await sendJson(options, { method: 'POST', path: '/x', body: {} }, never).catch(() => undefined);
  const { host } = options.connection.url;
  expect(metrics.like('')).toEqual({ [`rest_client_requests_total{code=${code},host=${host},method=POST}`]: 1 });
  expect([...metrics.observed.keys()]).toEqual([`rest_client_request_duration_seconds{host=${host},verb=POST}`]);
});
