import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '@switchyard/core';
import { afterEach, expect, test } from 'vitest';
import { outcomeOf, runLoad } from './request-load.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function serve(listener: RequestListener): Promise<URL> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/path`);
}

/** Outcomes of the requests until the server has got this many. */
async function outcomes(count: number, listener: RequestListener): Promise<readonly string[]> {
  const stop = new AbortController();
  let seen = 0;
  const url = await serve((request, response) => {
    seen++;
    if (seen === count) stop.abort();
    listener(request, response);
  });
  const results = await runLoad({ url, rate: 200, clock: systemClock }, stop.signal);
  for (const { sentAt, doneAt } of results) expect(doneAt).toBeGreaterThanOrEqual(sentAt);
  return [...new Set(results.slice(0, count).map(({ outcome }) => outcome))];
}

test.each<[outcome: string, listener: RequestListener]>([
  ['answered', (_, response) => response.end('ok')],
  ['error', (_, response) => response.writeHead(503).end()],
  ['empty', (request) => request.socket.end()],
  ['reset', (request) => request.socket.resetAndDestroy()],
  ['unanswered', () => undefined],
])('%s', async (outcome, listener) => {
  expect(await outcomes(3, listener)).toEqual([outcome]);
});

test('each request has its own connection', async () => {
  const ports = new Set<number | undefined>();
  await outcomes(5, ({ socket, url }, response) => {
    expect(url).toBe('/path');
    ports.add(socket.remotePort);
    response.end();
  });
  expect(ports.size).toBeGreaterThanOrEqual(5);
});

test.each([
  ['ECONNREFUSED', 'refused'],
  ['EPERM', 'dropped'],
  ['EHOSTUNREACH', 'unreachable'],
  ['ENOTFOUND', 'failed'],
])('%s is %s', (code, outcome) => {
  expect(outcomeOf(Object.assign(new Error(code), { code }))).toBe(outcome);
});
