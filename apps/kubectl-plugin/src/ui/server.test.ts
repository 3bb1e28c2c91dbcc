import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Script } from 'node:vm';
import { millis } from '@switchyard/core';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { page } from './page.ts';
import { createUiServer, newClock } from './server.ts';

const endpoint = (address: string, usedBy: readonly string[]) => ({ address, port: 8080, usedBy });
const service = {
  key: 'shop/cart:http/TCP',
  status: { kind: 'applied' },
  endpoints: [endpoint('10.0.0.1', ['Cluster', 'Local']), endpoint('10.0.0.2', ['Cluster'])],
};
const answers: Readonly<Record<string, string>> = {
  '/debug/status': JSON.stringify({ node: 'node1', families: [] }),
  '/debug/forwarding': JSON.stringify({ families: [{ ipFamily: 'IPv4', services: [service] }] }),
  '/debug/losses?format=json&seconds=3600':
    '{"time":"2026-01-01T10:00:01.000Z","node":"node1","packets":{"watched":true}}\n{"time":"2026-01-01T10:00:02.000Z","node":"node1","cause":"noEndpoints"}\n',
  '/debug/changes?seconds=3600': '{"time":"2026-01-01T10:00:01.500Z","node":"node1","service":"shop/cart:http/TCP"}\n',
};

let stop: AbortController;
let agent: Server;
let ui: Server;
const warnings: string[] = [];
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

beforeEach(async () => {
  stop = new AbortController();
  warnings.length = 0;
  agent = createServer(
    ({ url = '' }, response) => void response.writeHead(answers[url] === undefined ? 404 : 200).end(answers[url]),
  );
  await once(agent.listen(0, '127.0.0.1'), 'listening');
  const agents = [
    { node: 'node1', url: `http://127.0.0.1:${portOf(agent)}` },
    { node: 'node2', url: 'http://127.0.0.1:1' },
  ];
  ui = createUiServer({ agents, warn: (text) => void warnings.push(text) }, stop.signal);
  await once(ui.listen(0, '127.0.0.1'), 'listening');
});
afterEach(() => {
  stop.abort();
  agent.close();
});

async function get(
  path: string,
  host = '127.0.0.1',
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  const sent = request({ host: '127.0.0.1', port: portOf(ui), path, headers: { host } }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  let body = '';
  for await (const piece of response) body += String(piece);
  return { status: response.statusCode, body };
}

test('the page has everything in one file, and its program compiles', async () => {
  expect(await get('/')).toEqual({ status: 200, body: page });
  expect(page).not.toMatch(/(?:src|href)=|@import|url\(/);
  const [, program = ''] = /<script>([^]*)<\/script>/.exec(page) ?? [];
  expect(program.length).toBeGreaterThan(1000);
  expect(() => new Script(program)).not.toThrow();
});

test('the status has the nodes that answer, and warns of the others', async () => {
  expect(JSON.parse((await get('/api/status')).body)).toEqual([{ node: 'node1', families: [] }]);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/cannot reach the agent of node2/);
});

test('Services have their usable endpoints by node', async () => {
  expect(JSON.parse((await get('/api/services')).body)).toEqual([
    {
      key: 'shop/cart:http/TCP',
      ipFamily: 'IPv4',
      byNode: { node1: { status: 'applied', all: 2, cluster: 2, local: 1 } },
    },
  ]);
});

test('losses and changes of all nodes come as events; a node without an answer is warned of', async () => {
  const { status, body } = await get('/api/events');
  expect(status).toBe(200);
  const events = [...body.matchAll(/^data: (.*)$/gm)].map(([, text = '']) => JSON.parse(text) as { time: string });
  expect(events).toHaveLength(3);
  expect(events).toContainEqual(expect.objectContaining({ node: 'node1', cause: 'noEndpoints' }));
  expect(events).toContainEqual(expect.objectContaining({ node: 'node1', service: 'shop/cart:http/TCP' }));
  expect(warnings.filter((text) => text.includes('cannot reach the agent of node2'))).toHaveLength(2);
});

test("a node's times are moved to this machine's clock, by the line that was fastest", () => {
  let now = Date.parse('2026-01-01T12:00:00.300Z');
  const onClock = newClock({ now: () => millis(now) });
  const moved = (time: string): string => onClock({ time }).time;
  expect(moved('2026-01-01T10:00:00.000Z')).toBe('2026-01-01T12:00:00.300Z'); // 300 ms on its way, or clocks apart
  now += 1000;
  expect(moved('2026-01-01T10:00:01.290Z')).toBe('2026-01-01T12:00:01.300Z'); // this took at most 10 ms
  now += 1000;
  expect(moved('2026-01-01T10:00:02.000Z')).toBe('2026-01-01T12:00:02.010Z'); // late; its time counts
});

test.each(['evil.example', 'evil.example:8080', '127.0.0.1.evil.example'])(
  'a request for the host %s is refused',
  async (host) => {
    expect(await get('/api/status', host)).toEqual({ status: 403, body: '' });
  },
);

test('other paths are not found', async () => {
  expect((await get('/etc/passwd')).status).toBe(404);
});
