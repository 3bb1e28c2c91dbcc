import { millis, seconds, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type LabCluster,
  type LabNode,
  type LabProcess,
  type LoadResult,
  startCluster,
  startLoad,
  waitForAgents,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';

const { signal } = new AbortController();
let cluster: LabCluster;
let node: LabNode;
let agent: LabProcess;
let nodePort: number;

beforeAll(async () => {
  cluster = await startCluster({ name: 'outage', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  agent = cluster.startAgent(node);
  await waitForAgents(cluster.lab, [agent], signal);
  const { deployment, service } = zeroapp({ externalTrafficPolicy: 'Cluster' });
  const created = await cluster.api.create(apiResources.services, service, signal);
  nodePort = created.spec?.ports?.[0]?.nodePort ?? 0;
  await cluster.api.create(apiResources.deployments, deployment, signal);
  await until(async () => (await addresses()).includes('10.244.1.'));
});

afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
});

/** The lines of the rule set that name an address: what a loss would show in. */
async function addresses(): Promise<string> {
  const { stdout } = await node.run('nft', ['list', 'ruleset']);
  return stdout
    .split('\n')
    .filter((line) => /\d+\.\d+\.\d+\.\d+/.test(line))
    .join('\n');
}

/** Requests that were lost while `action` ran. */
async function lostDuring(action: () => Promise<void>): Promise<readonly LoadResult[]> {
  const url = `http://${node.addresses.IPv4}:${nodePort}/`;
  await using load = startLoad(cluster.lab.client, { url, rate: 50, duration: seconds(60) });
  await systemClock.sleep(millis(300), signal);
  await action();
  await systemClock.sleep(millis(300), signal);
  const results = await load.stop();
  expect(results.length).toBeGreaterThan(100);
  return results.filter(({ outcome }) => outcome !== 'answered');
}

test('an API server that is away, and has forgotten the past when it is back, costs no rule and no request', async () => {
  const before = await addresses();
  const lost = await lostDuring(async () => {
    const outage = cluster.server.faults.stop();
    await until(async () => (await readLog(agent)).some(({ msg }) => msg.startsWith('lost the API server')));
    await systemClock.sleep(seconds(4), signal);
    expect(await addresses()).toBe(before);
    cluster.server.store.compact();
    outage[Symbol.dispose]();
  });
  expect(lost).toEqual([]);
  const ports = [{ port: 81 }];
  const late = { metadata: { name: 'late', namespace: 'default' }, spec: { ports } };
  const { spec } = await cluster.api.create(apiResources.services, late, signal);
  await until(async () => (await addresses()).includes(spec?.clusterIP ?? 'none'));
  const resources = new Set(['Service', 'EndpointSlice', 'Node', 'ServiceCIDR']);
  await until(async () => {
    const back = (await readLog(agent)).filter(({ msg }) => msg === 'the API server is back');
    return resources.isSubsetOf(new Set(back.map(({ resource }) => String(resource))));
  });
});

test('an agent that is killed, and started again, costs no request and writes nothing', async () => {
  const lost = await lostDuring(async () => {
    process.kill(agent.pid, 'SIGKILL');
    await agent.ended;
    await systemClock.sleep(seconds(2), signal);
    agent = cluster.startAgent(node);
    await waitForAgents(cluster.lab, [agent], signal);
  });
  expect(lost).toEqual([]);
  const applied = (await readLog(agent)).filter(({ msg }) => msg === 'applied');
  expect(new Set(applied.map(({ writes }) => writes))).toEqual(new Set([0]));
});
