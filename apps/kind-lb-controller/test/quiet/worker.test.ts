import { millis, parseIp, parsePort, type Protocol, systemClock } from '@switchyard/core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { healthProfile } from '../../src/health-profile/health-profiles.ts';
import { exampleSpec } from '../../src/testing/example-specs.ts';
import type { WorkerRequest } from '../../src/worker/protocol.ts';
import { nodes } from '../privileged/haproxy-namespace.ts';
import { until } from '@switchyard/core/testing';
import { createFakeContainer, type FakeContainer } from '../privileged/fake-container.ts';

// One container for the whole file, in the order of the tests.
let container: FakeContainer;

beforeAll(async () => {
  container = await createFakeContainer('lbwk');
});
afterAll(() => container?.[Symbol.asyncDispose]());

const address = parseIp('10.9.0.100');
const both = { [nodes[0]]: 2, [nodes[1]]: 2 };

/** Serves these ports of 10.9.0.100, all to the nodes' port 30080. */
function apply(
  ports: readonly number[],
  isPublished = false,
  protocol: Protocol = 'TCP',
): Extract<WorkerRequest, { command: 'apply' }> {
  const targets = nodes.map((text, index) => {
    const own = parseIp(text);
    const check = { address: own, port: parsePort(32080), path: '/healthz' };
    const name = `node${index + 1}`;
    return { name, node: name, address: own, port: parsePort(30080), check, draining: 'no' as const };
  });
  const spec = exampleSpec('web', {
    profile: healthProfile('cloud-provider-kind', { interval: millis(200) }),
    ports: ports.map((port) => ({ port: parsePort(port), protocol, addresses: [address], targets })),
  });
  return { command: 'apply', spec, isPublished };
}
/** Whether port 80 is unanswered. Without the address there is no error either, so the wait is short. */
const isSilent = async (): Promise<boolean> =>
  (await container.host.load(`http://${address}/`, { count: 1, gap: 1, timeout: 300 }))['lost'] === 1;
const get = (port: number, host: string = address): Promise<unknown> =>
  container.host.get(`http://${host}:${port}/`, 4);

test('a fresh container serves nothing, and after the first request the load balancer', async () => {
  expect(await isSilent()).toBe(true);
  expect(await container.work(apply([80]))).toEqual({ status: 'applied' });
  expect(await get(80)).toEqual(both);
  expect(await container.work(apply([80]))).toEqual({ status: 'unchanged' });
  expect(await container.work({ command: 'followHealth' })).toEqual({ status: 'unchanged' });
});

test('ports come and go, and published ones are served on the container’s own address, without losing a request', async () => {
  const load = container.host.load(`http://${address}/`, { count: 400, gap: 10 });
  expect(await container.work(apply([80, 81]))).toEqual({ status: 'applied' });
  expect(await container.work(apply([80, 81], true))).toEqual({ status: 'applied' });
  expect(await get(81, '10.9.0.2')).toEqual(both);
  expect(await container.work(apply([80]))).toEqual({ status: 'applied' });
  expect(await get(81)).toEqual({ lost: 4 });
  expect(((await load) as Record<string, number>)['lost']).toBeUndefined();
});

test('requests that overlap are done one after the other', async () => {
  const answers = await Promise.all([container.work(apply([80, 82])), container.work(apply([80, 82]))]);
  expect(answers.map(({ status }) => status).sort()).toEqual(['applied', 'unchanged']);
});

test('what HAProxy refuses is answered with its words, and what ran runs on', async () => {
  const request = apply([80]);
  const spec = { ...request.spec, addresses: [] }; // no longer added to eth0 ...
  const ports = spec.ports.map((port) => ({ ...port, addresses: [parseIp('192.0.2.9')] })); // ... nor this one, ever
  const answer = await container.work({ ...request, spec: { ...spec, ports } });
  expect(answer).toMatchObject({ status: 'failed', reason: 'HAProxyRejected' });
  expect(answer).toMatchObject({ message: expect.stringContaining('refused to reload') });
  expect(await get(82)).toEqual(both);
  expect(await container.work(apply([80]))).toEqual({ status: 'applied' });
});

test('killed at any point, it leaves what works, and the next run completes', async () => {
  const start = systemClock.monotonic();
  await container.work(apply([80, 1000]));
  const duration = systemClock.monotonic() - start;
  for (const part of [40, 50, 60, 70, 80, 90]) {
    const port = 1000 + part;
    await container.workUntilKilled(apply([80, port]), (duration * part) / 100);
    expect(await get(80)).not.toHaveProperty('lost'); // a reload may be under way: both workers take their turns
    expect(['applied', 'unchanged']).toContain((await container.work(apply([80, port]))).status);
    expect(await get(port)).toEqual(both);
  }
});

test('a container that starts again begins empty and is filled by the next request', async () => {
  await container.restart();
  expect(await isSilent()).toBe(true);
  expect(await container.work(apply([80]))).toEqual({ status: 'applied' });
  await until('both nodes', async () => JSON.stringify(await get(80)) === JSON.stringify(both));
  expect(container.log()).not.toMatch(/ALERT/);
});

test('kernel rules follow the health that HAProxy sees', async () => {
  const rules = (): string => container.host.run('nft', 'list', 'ruleset');
  expect(await container.work(apply([53], false, 'UDP'))).toEqual({ status: 'applied' });
  expect(nodes.filter((node) => rules().includes(node))).toEqual(nodes);
  await container.host.setHealth(nodes[0], 503);
  await until('a DOWN server', () => container.log().includes('Server kind:default:web:check:ipv4/node1 is DOWN'));
  expect(await container.work({ command: 'followHealth' })).toEqual({ status: 'applied' });
  expect(nodes.filter((node) => rules().includes(node))).toEqual([nodes[1]]);
  expect(await container.work({ command: 'followHealth' })).toEqual({ status: 'unchanged' });
  await container.host.setHealth(nodes[1], 503);
  await until('no target UP', () => container.log().includes('Server kind:default:web:check:ipv4/node2 is DOWN'));
  expect(await container.work({ command: 'followHealth' })).toEqual({ status: 'applied' });
  expect(nodes.filter((node) => rules().includes(node))).toEqual([]);
  const { spec, ...request } = apply([53], false, 'UDP');
  const profile = { ...spec.profile, whenNoneUp: 'all' } as const;
  expect(await container.work({ ...request, spec: { ...spec, profile } })).toEqual({ status: 'applied' });
  expect(nodes.filter((node) => rules().includes(node))).toEqual(nodes);
  for (const node of nodes) await container.host.setHealth(node, 200);
  expect(await container.work(apply([80]))).toEqual({ status: 'applied' });
  expect(rules()).not.toContain(nodes[1]);
});

test('HAProxy as process 1 finishes its connections and ends when the container is stopped', async () => {
  const slow = container.host.get(`http://${address}/slow`, 1);
  await systemClock.sleep(millis(300), new AbortController().signal);
  container.signal('SIGUSR1');
  await until('no new connections', isSilent);
  expect(Object.values(await slow)).toEqual([1]);
  expect(Object.keys(await slow)).not.toContain('lost');
  await until('HAProxy to end', () => container.host.pids().length === 0);
});
