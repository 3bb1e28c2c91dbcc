import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { noopLogger, parseCidr, parseIp, seconds, systemClock } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HaproxyConfiguration } from '../../src/haproxy/render-haproxy.ts';
import { newInterfaceAddresses } from '../../src/kernel/interface-addresses.ts';
import { assertNotMachines } from '../../src/kernel/own-namespace.ts';
import { haproxyFiles } from '../../src/haproxy/haproxy-files.ts';
import { type MasterState, waitForMaster } from '../../src/haproxy/haproxy-master.ts';
import { HaproxyProcess } from '../../src/haproxy/haproxy-process.ts';
import { containerMaster } from '../../src/worker/container-master.ts';

// HAProxy runs in a namespace with only a loopback interface; we stay outside, as with `--netns`.
const netns = `swy-lb-${process.pid}`;
const { signal } = new AbortController();
const runner = createCommandRunner();
let folder: string;

const inside = (...command: readonly string[]): string =>
  execFileSync('nsenter', [`--net=/run/netns/${netns}`, '--', ...command], { encoding: 'utf8' });
const newProcess = (isKeptOnExit = false, onEnd = (): void => undefined): HaproxyProcess =>
  new HaproxyProcess({
    runDirectory: folder,
    program: '/usr/sbin/haproxy',
    netns,
    isKeptOnExit,
    runner,
    clock: systemClock,
    log: noopLogger,
    onStateChange: () => undefined,
    onEnd,
  });
const configuration = (...frontends: readonly string[]): HaproxyConfiguration => ({
  servers: [],
  weights: undefined,
  text: [
    'defaults',
    '    mode tcp',
    '    timeout connect 5000',
    '    timeout client 50000',
    '    timeout server 50000',
    ...frontends,
    '',
  ].join('\n'),
});
const listening = (): readonly string[] =>
  [...inside('ss', '-Htln').matchAll(/(\S+:\d+)\s+\S+:\*/g)].map(([, address = '']) => address).sort();
const running = (): readonly string[] =>
  execFileSync('ip', ['netns', 'pids', netns], { encoding: 'utf8' }).match(/\d+/g) ?? [];
const frontend = (name: string, bind: string): string => `frontend ${name}\n    bind ${bind}`;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'swy-lb-'));
  execFileSync('ip', ['netns', 'add', netns]);
  execFileSync('ip', ['-n', netns, 'link', 'set', 'lo', 'up']);
});
afterEach(() => {
  for (const pid of running()) process.kill(Number(pid), 'SIGKILL');
  execFileSync('ip', ['netns', 'del', netns]);
  rmSync(folder, { recursive: true, force: true });
});

describe('a configuration', () => {
  test('runs in the namespace, is not applied twice, and is replaced without a new process', async () => {
    await using haproxy = newProcess();
    const one = configuration(frontend('a', '127.0.0.1:8001'));
    expect(await haproxy.apply(one, signal)).toEqual({ status: 'applied' });
    expect(listening()).toEqual(['127.0.0.1:8001']);
    expect(await haproxy.apply(one, signal)).toEqual({ status: 'unchanged' });
    const pid = readFileSync(`${folder}/haproxy.pid`, 'utf8');
    const two = configuration(frontend('a', '127.0.0.1:8001'), frontend('b', '[::1]:8002'));
    expect(await haproxy.apply(two, signal)).toEqual({ status: 'applied' });
    expect(listening()).toEqual(['127.0.0.1:8001', '[::1]:8002']);
    expect(readFileSync(`${folder}/haproxy.pid`, 'utf8')).toBe(pid);
  });

  test('that HAProxy does not understand is rejected with its words, and the good one stays', async () => {
    await using haproxy = newProcess();
    const good = configuration(frontend('a', '127.0.0.1:8001'));
    await haproxy.apply(good, signal);
    const result = await haproxy.apply(configuration('frontend b', '    nonsense'), signal);
    expect(result).toMatchObject({ status: 'rejected', reason: expect.stringMatching(/^haproxy -c: .*nonsense/) });
    expect(readFileSync(haproxyFiles(folder).configuration, 'utf8')).toBe(good.text);
    expect(listening()).toEqual(['127.0.0.1:8001']);
    expect(await haproxy.apply(good, signal)).toEqual({ status: 'unchanged' });
  });

  test('that HAProxy understands but cannot bind is rejected, the good one stays, and the next one is taken', async () => {
    await using haproxy = newProcess();
    const good = configuration(frontend('a', '127.0.0.1:8001'));
    await haproxy.apply(good, signal);
    const result = await haproxy.apply(configuration(frontend('b', '192.0.2.1:8001')), signal);
    expect(result).toMatchObject({
      status: 'rejected',
      reason: expect.stringMatching(/refused to reload.*192\.0\.2\.1/),
    });
    expect(readFileSync(haproxyFiles(folder).configuration, 'utf8')).toBe(good.text);
    expect(listening()).toEqual(['127.0.0.1:8001']);
    expect(await haproxy.apply(configuration(frontend('c', '127.0.0.1:8003')), signal)).toEqual({ status: 'applied' });
    expect(listening()).toEqual(['127.0.0.1:8003']);
  });

  test('that cannot be bound at the first start leaves no process', async () => {
    await using haproxy = newProcess();
    const result = await haproxy.apply(configuration(frontend('b', '192.0.2.1:8001')), signal);
    expect(result).toMatchObject({ status: 'rejected', reason: expect.stringMatching(/did not start.*192\.0\.2\.1/) });
    expect(running()).toEqual([]);
    expect(await haproxy.apply(configuration(frontend('a', '127.0.0.1:8001')), signal)).toEqual({ status: 'applied' });
  });
});

describe('the process', () => {
  const good = (): HaproxyConfiguration => configuration(frontend('a', '127.0.0.1:8001'));
  test('is stopped on disposal, with its workers', async () => {
    const haproxy = newProcess();
    await haproxy.apply(good(), signal);
    expect(running().length).toBeGreaterThan(1);
    await haproxy[Symbol.asyncDispose]();
    expect(running()).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ['is kept', true],
    ['was started just before its controller was killed', false],
  ])('that %s goes on, and the next one takes its place', async (_, isPidWritten) => {
    const first = newProcess(true);
    await first.apply(good(), signal);
    await first[Symbol.asyncDispose]();
    expect(listening()).toEqual(['127.0.0.1:8001']);
    if (!isPidWritten) rmSync(`${folder}/haproxy.pid`);
    const before = running();
    await using second = newProcess();
    expect(await second.apply(good(), signal)).toEqual({ status: 'applied' });
    expect(listening()).toEqual(['127.0.0.1:8001']);
    await expect.poll(() => running().filter((pid) => before.includes(pid))).toEqual([]);
  });

  test('that ends by itself is reported, and started again by the next apply', async () => {
    const ended = Promise.withResolvers<void>();
    await using haproxy = newProcess(false, ended.resolve);
    await haproxy.apply(good(), signal);
    process.kill(Number(readFileSync(`${folder}/haproxy.pid`, 'utf8')), 'SIGKILL');
    await ended.promise;
    expect(await haproxy.apply(good(), signal)).toEqual({ status: 'applied' });
    expect(listening()).toEqual(['127.0.0.1:8001']);
  });
});

test('a connection that never ends keeps its worker for fifty reloads, not for ever', async () => {
  const wait = ['    tcp-request inspect-delay 60s', '    tcp-request content accept if { req.len gt 100 }'];
  await using haproxy = newProcess();
  await haproxy.apply(configuration(frontend('a', '127.0.0.1:8001'), ...wait), signal);
  const hold = ['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/8001 && read -u 3'];
  const client = spawn('nsenter', [`--net=/run/netns/${netns}`, '--', ...hold], { stdio: 'ignore' });
  await expect.poll(() => inside('ss', '-Htn', 'dst', '127.0.0.1:8001')).toContain('ESTAB');
  const master = containerMaster(haproxyFiles(folder).masterSocket, haproxy.pid);
  for (let count = 1; count <= 51; count++) {
    if (count === 51) expect(client.exitCode).toBeNull();
    await master.requestReload(signal);
    const limits = { clock: systemClock, limit: seconds(5) };
    const isDone = (one: MasterState): boolean => one.reloads >= count && one.workers.length > 0;
    expect(await waitForMaster(master, isDone, limits, signal)).toBeDefined();
  }
  await expect.poll(() => client.exitCode).not.toBeNull();
});

describe('pool addresses', () => {
  const addresses = (): readonly string[] =>
    [...inside('ip', '-o', 'addr', 'show', 'dev', 'lo').matchAll(/ inet6? (\S+)/g)].map(([, text = '']) => text).sort();
  test('are added, kept when they are there, and removed; others are left alone', async () => {
    inside('ip', 'addr', 'add', '198.51.100.9/32', 'dev', 'lo');
    const pool = [parseCidr('192.0.2.0/24'), parseCidr('2001:db8::/64')];
    const managed = newInterfaceAddresses({ runner, interfaceName: 'lo', netns, pool });
    const [one, two, six] = ['192.0.2.1', '192.0.2.2', '2001:db8::1'].map(parseIp);
    await managed.add([one!, six!], signal);
    await managed.add([one!, two!, six!], signal);
    const others = ['127.0.0.1/8', '198.51.100.9/32', '::1/128'];
    expect(addresses()).toEqual([...others, '192.0.2.1/32', '192.0.2.2/32', '2001:db8::1/128'].sort());
    await managed.removeOthers([two!], signal);
    expect(addresses()).toEqual([...others, '192.0.2.2/32'].sort());
  });
  test('an interface that is not there is named', async () => {
    const managed = newInterfaceAddresses({ runner, interfaceName: 'eth9', netns, pool: [] });
    await expect(managed.add([], signal)).rejects.toThrow(/eth9/);
  });
  test("never the machine's own: its namespace is refused", async () => {
    await expect(assertNotMachines(netns)).resolves.toBeUndefined();
    await expect(assertNotMachines(undefined)).rejects.toThrow(/machine's own addresses/);
  });
});
