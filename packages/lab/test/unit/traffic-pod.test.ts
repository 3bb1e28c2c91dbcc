import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { type AddressInfo, createServer } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  portTakenExitCode,
  type TrafficCall,
  type TrafficCalls,
  type TrafficPodOptions,
  trafficPodArguments,
  trafficPodCommand,
  trafficTokenHeader,
} from '../../src/index.ts';

const token = 'for this test';
const tokenDigest = createHash('sha256').update(token).digest('hex');
const started: ChildProcess[] = [];
let [port, echoPort] = [0, 0];

beforeAll(async () => {
  [port, echoPort] = [await freePort(), await freePort()];
  start(port);
  await vi.waitUntil(() => call('hello', {}).catch(() => undefined), { timeout: 10_000 });
  expect(await call('listen', { http: [], tcp: [echoPort], udp: [echoPort] })).toEqual({ failed: [] });
});

afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});

test.each([
  ['without a token', {}],
  ['with a wrong one', { [trafficTokenHeader]: 'guessed' }],
  ['with the digest, which anybody can read', { [trafficTokenHeader]: tokenDigest }],
])('a client %s is refused', async (_, headers) => {
  const reply = await fetch(`http://127.0.0.1:${port}/hello`, { method: 'POST', body: '{}', headers });
  expect([reply.status, await reply.text()]).toEqual([403, 'the token is missing or wrong\n']);
});

test.each([
  ['a call that is none', 'POST', '/exec', '{}', 404],
  ['a name of every object', 'POST', '/constructor', '{}', 404],
  ['another method', 'PUT', '/hello', '{}', 404],
  ['what is no JSON', 'POST', '/hello', 'hello', 400],
  ['a body without end', 'POST', '/hello', ' '.repeat(2_000_000), 400],
])('%s is refused', async (_, method, path, body, status) => {
  const request = { method, body, headers: { [trafficTokenHeader]: token } };
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, request);
  expect(reply.status).toBe(status);
});

test.each(['tcp', 'udp'] as const)('each attempt of %s has a result, and a port of its own', async (protocol) => {
  const probe = { protocol, address: '127.0.0.1', port: echoPort, isFromFreshPort: true } as const;
  const { results } = await call('probe', { probes: [probe, probe, probe] });
  const ports = results.map((result) => (result.status === 'answered' ? result.seenSourcePort : result.status));
  expect(new Set(ports).size).toBe(3);
  expect(results[0]).toMatchObject({ status: 'answered', by: 'one', seenSource: '127.0.0.1' });
});

test('a UDP socket stays open for several questions, from one port', async () => {
  const probe = { protocol: 'udp', address: '127.0.0.1', port: echoPort } as const;
  const { connection } = await call('connect', probe);
  const ask = () => call('ask', { connection, timeout: 1000 });
  const ports = [await ask(), await ask()].map((one) => (one.status === 'answered' ? one.seenSourcePort : one.status));
  expect([typeof ports[0], new Set(ports).size]).toEqual(['number', 1]);
  await call('close', { connection });
  expect(await ask()).toMatchObject({ status: 'unreachable', code: 'EBADF' });
});

test('an app serves from the start on, also after SIGTERM, until a call ends it', async () => {
  const [control, http] = [await freePort(), await freePort()];
  const child = start(control, { http, tcp: await freePort(), delayShutdown: 60 });
  const ready = async (): Promise<number> => (await fetch(`http://127.0.0.1:${http}/readyz`)).status;
  await vi.waitUntil(() => ready().catch(() => undefined), { timeout: 10_000 });
  child.kill('SIGTERM');
  child.kill('SIGTERM');
  const ended = once(child, 'exit');
  expect(await Promise.race([ended, ready(), ready()])).toBe(200);
  await fetch(`http://127.0.0.1:${control}/end`, {
    method: 'POST',
    body: '{}',
    headers: { [trafficTokenHeader]: token },
  });
  expect((await ended)[0]).toBe(0);
});

test('the wall clock is that of the machine', async () => {
  expect(Math.abs((await call('clock', {})).now - Date.now())).toBeLessThan(1000);
});

test('a port that is taken is reported, and the others are open', async () => {
  const taken = createServer().listen(0);
  await once(taken, 'listening');
  const { port: number } = taken.address() as AddressInfo;
  const other = await freePort();
  expect(await call('listen', { http: [], tcp: [number, other], udp: [] })).toEqual({
    failed: [`${number}/tcp: EADDRINUSE`],
  });
  const probe = { protocol: 'tcp', address: '127.0.0.1', port: other } as const;
  expect((await call('await', { probe, until: { by: 'one', interval: 5, timeout: 2000 } })).result.status).toBe(
    'answered',
  );
  taken.close();
});

test('a connection is kept until it is closed by a call', async () => {
  const { connection } = await call('open', { protocol: 'tcp', address: '127.0.0.1', port: echoPort });
  const exchange = { connection: connection ?? 0, text: 'still here', timeout: 1000 };
  expect(await call('exchange', exchange)).toEqual({ status: 'echoed' });
  await call('close', { connection: connection ?? 0 });
  expect(await call('exchange', exchange)).toEqual({ status: 'closed' });
});

test('a load is an open loop; its results come as they are, and it can be stopped', async () => {
  const http = await freePort();
  await call('listen', { http: [http], tcp: [], udp: [] });
  const url = `http://127.0.0.1:${http}/`;
  const { load } = await call('load', { url, rate: 100, timeout: 500, duration: 60_000 });
  const first = await call('loaded', { load, from: 0 });
  expect(first.messages[0]).toMatchObject({ sequence: 0, outcome: 'answered', answeredBy: 'one' });
  await call('unload', { load });
  await expect.poll(async () => (await call('loaded', { load, from: 10_000 })).isFinished).toBe(true);
});

test('it ends with a status of its own when its port is taken', async () => {
  const second = start(port);
  const [status] = (await once(second, 'exit')) as [number];
  expect(status).toBe(portTakenExitCode);
});

function start(controlPort: number, more: Partial<TrafficPodOptions> = {}): ChildProcess {
  const [file = '', ...args] = trafficPodCommand();
  const options = { pod: 'one', node: 'node1', port: controlPort, tokenDigest, ...more };
  const child = spawn(file, [...args, ...trafficPodArguments(options)], { stdio: 'ignore' });
  started.push(child);
  return child;
}

async function call<K extends TrafficCall>(
  name: K,
  argument: TrafficCalls[K]['argument'],
): Promise<TrafficCalls[K]['result']> {
  const headers = { [trafficTokenHeader]: token };
  const reply = await fetch(`http://127.0.0.1:${port}/${name}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(argument),
  });
  if (reply.status !== 200) throw new Error(`${name}: ${reply.status} ${await reply.text()}`);
  return (await reply.json()) as TrafficCalls[K]['result'];
}

/** A free port; the kernel gives other callers different ones. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port: free } = server.address() as AddressInfo;
  server.close();
  return free;
}
