import { ipFamilies, millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type LabCluster, type LabNode, type LabProcess, startCluster, waitForAgents } from '@switchyard/lab';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LogLine, readLog, until } from './agent-log.ts';
import { rulesetOf } from './ruleset.ts';

const program = fileURLToPath(new URL('../../bin/switchyard-agent', import.meta.url));
const { signal } = new AbortController();
let cluster: LabCluster;
let node: LabNode;

beforeAll(async () => {
  cluster = await startCluster({ name: 'lifecyc', nodes: 1, ipFamilies }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  const spec = { ipFamilyPolicy: 'PreferDualStack' as const, ports: [{ port: 80 }] };
  await cluster.api.create(apiResources.services, { metadata: { name: 'cart', namespace: 'default' }, spec }, signal);
});

afterAll(() => cluster[Symbol.asyncDispose]());

const pause = (milliseconds: number): Promise<void> => systemClock.sleep(millis(milliseconds), signal);

const ages = async (agent: LabProcess): Promise<readonly LogLine[]> =>
  (await readLog(agent)).filter(({ msg }) => msg === 'rules were not reconciled for some time');

/** An agent whose API server never answers. */
async function startUnsynced(): Promise<LabProcess> {
  const kubeconfig = `${cluster.lab.folder}/nobody.kubeconfig`;
  const config = {
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: 'http://172.18.0.251:6443' } }],
    users: [{ name: 'x', user: {} }],
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  return cluster.startAgent(node, { args: [`--kubeconfig=${kubeconfig}`] });
}

/** Whether the monitor reports writes. */
async function isSeen(monitor: LabProcess, table: string): Promise<boolean> {
  await node.run('nft', ['add', 'table', 'inet', table]);
  await pause(100);
  await node.run('nft', ['delete', 'table', 'inet', table]);
  return (await readLog(monitor)).some(({ msg }) => msg.includes(`add table inet ${table}`));
}

describe('before everything was listed', () => {
  test('no table is made on a fresh node', async () => {
    const agent = await startUnsynced();
    await until(async () => (await readLog(agent)).some(({ msg }) => msg === 'starting'));
    expect((await readLog(agent)).find(({ msg }) => msg === 'starting')).toMatchObject({
      source: 'kubeconfig',
      from: 'http://172.18.0.251:6443',
    });
    await pause(2500);
    expect(await rulesetOf(node)).toBe('');
    expect(await ages(agent)).toEqual([]);
    await agent.stop();
    expect(await agent.ended).toBe(0);
    expect(await rulesetOf(node)).toBe('');
  });

  test('nothing of what is there is written, the heartbeat included, though it differs from the cluster', async () => {
    const first = cluster.startAgent(node);
    await waitForAgents(cluster.lab, [first], signal);
    await first.stop();
    await node.run('nft', ['flush', 'map', 'inet', 'switchyard', 'frontends4']);
    const monitor = node.spawn('nft', ['monitor'], { logName: 'monitor' });
    await until(() => isSeen(monitor, 'watched'));
    const before = await rulesetOf(node);
    const agent = await startUnsynced();
    await until(async () => (await ages(agent)).length === 2);
    await pause(2500);
    await agent.stop();
    expect(await rulesetOf(node)).toBe(before);
    await until(() => isSeen(monitor, 'still-watched'));
    await monitor.stop();
    const noticed = (await readLog(monitor)).map(({ msg }) => msg).filter((line) => /heartbeat|switchyard /.test(line));
    expect(noticed).toEqual([]);
  });
});

describe('the age of the rules', () => {
  test('grows when the agent was killed, is read by nft and by the dump, and told by the next agent', async () => {
    const first = cluster.startAgent(node);
    await waitForAgents(cluster.lab, [first], signal);
    process.kill(first.pid, 'SIGKILL');
    await first.ended;
    const killedAt = performance.now();
    await pause(3000);
    const listed = (await node.run('nft', ['list', 'set', 'inet', 'switchyard', 'heartbeat4'])).stdout;
    expect(listed).toMatch(/elements = \{ "20\d\d-\d\d-\d\d \d\d:\d\d:\d\d" timeout 1000d expires 999d23h59m[45]\d/);
    const dumped = (await node.run(program, ['--switchyard-dump'])).stdout;
    const [, dumpedAge] = /^# IPv4: rules last known to be right (\d+) s ago$/m.exec(dumped) ?? [];
    expect(Number(dumpedAge)).toBeGreaterThanOrEqual(3);
    const next = cluster.startAgent(node);
    await waitForAgents(cluster.lab, [next], signal);
    const told = await ages(next);
    expect(told.map(({ ipFamily }) => ipFamily).sort()).toEqual(['IPv4', 'IPv6']);
    const [line] = told;
    expect(line?.['forSeconds']).toBeGreaterThanOrEqual(3);
    // The last heartbeat may be twenty seconds older than the end of its process.
    expect(line?.['forSeconds']).toBeLessThan((performance.now() - killedAt) / 1000 + 21);
    await next.stop();
  });

  test('is kept small by an agent that has nothing to do', async () => {
    const agent = cluster.startAgent(node);
    await waitForAgents(cluster.lab, [agent], signal);
    await pause(23_000);
    const dumped = (await node.run(program, ['--switchyard-dump'])).stdout;
    const [, age] = /^# IPv4: rules last known to be right (\d+) s ago$/m.exec(dumped) ?? [];
    expect(Number(age)).toBeLessThan(8);
    expect((await readLog(agent)).filter(({ level }) => level === 'warn')).toEqual([]);
    await agent.stop();
  });
});

test('a stop leaves every rule as it is', async () => {
  const agent = cluster.startAgent(node);
  await waitForAgents(cluster.lab, [agent], signal);
  const before = await rulesetOf(node);
  await agent.stop();
  expect(await agent.ended).toBe(0);
  expect(await rulesetOf(node)).toBe(before);
});
