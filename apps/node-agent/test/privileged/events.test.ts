import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type LabCluster, type LabNode, type LabProcess, startCluster, waitForAgents } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';

const { signal } = new AbortController();
const run = promisify(execFile);
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
const healthPort = 30_999;

let cluster: LabCluster;
let node: LabNode;
let agent: LabProcess;

beforeAll(async () => {
  cluster = await startCluster({ name: 'nodeev', nodes: 1, ipFamilies }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  agent = cluster.startAgent(node, { args: ['--nodeport-addresses=0.0.0.0/0,::/0'] });
  await waitForAgents(cluster.lab, [agent], signal);
});

afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
});

interface ApiEvent {
  readonly reason: string;
  readonly type: string;
  readonly note: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly regarding: { readonly kind: string; readonly name: string; readonly uid: string };
  readonly series?: { readonly count: number };
}

async function eventsOf(reason: string): Promise<readonly ApiEvent[]> {
  const response = await fetch(`${cluster.url}/apis/events.k8s.io/v1/events`);
  const { items } = (await response.json()) as { readonly items: readonly ApiEvent[] };
  return items.filter((event) => event.reason === reason);
}

async function kubectl(...args: readonly string[]): Promise<string> {
  return (await run('kubectl', [`--kubeconfig=${cluster.kubeconfig}`, ...args])).stdout;
}

/** Removes an element of the agent from the kernel. */
async function damage(): Promise<void> {
  const { exitCode, stderr } = await node.run('nft', ['flush', 'set', 'inet', 'switchyard', 'nodeport-ips4']);
  expect(exitCode, stderr).toBe(0);
}

async function service(name: string, port: number): Promise<void> {
  const spec = {
    type: 'LoadBalancer' as const,
    externalTrafficPolicy: 'Local' as const,
    healthCheckNodePort: port,
    ports: [{ name: 'http', port: 80 }],
  };
  await cluster.api.create(apiResources.services, { metadata: { name }, spec }, signal);
}

test('the start is an Event on the Node, as in kube-proxy', async () => {
  await until(async () => (await eventsOf('Starting')).length === 1);
  expect(await eventsOf('Starting')).toMatchObject([
    {
      type: 'Normal',
      action: 'StartKubeProxy',
      reportingController: 'kube-proxy',
      reportingInstance: `kube-proxy-${node.nodeName}`,
      metadata: { namespace: 'default' },
      regarding: { kind: 'Node', name: node.nodeName, uid: node.nodeName },
    },
  ]);
});

test('repaired rules cause Events, and repetitions become one series', async () => {
  const reason = 'ForwardingRulesRepaired';
  await damage();
  await until(async () => (await eventsOf(reason)).length === 1);
  expect((await eventsOf(reason))[0]).toMatchObject({
    type: 'Warning',
    note: expect.stringMatching(/^IPv4: nft \(pid \d+\) changed the forwarding rules/) as string,
  });
  await damage();
  await until(async () => (await eventsOf(reason))[0]?.series?.count === 2);
  expect(await eventsOf(reason)).toHaveLength(1);
});

test('a healthCheckNodePort in use causes an Event on its Service, with the uid of the API server', async () => {
  const script = `require('node:net').createServer().listen(${healthPort}, '0.0.0.0')`;
  node.spawn(process.execPath, ['-e', script]);
  await until(async () => (await node.run('ss', ['-ltn'])).stdout.includes(`:${healthPort}`));
  await service('busy', healthPort);
  const reason = 'FailedToStartServiceHealthcheck';
  await until(async () => (await eventsOf(reason)).length === 1);
  const { metadata } = await cluster.api.get(apiResources.services, { name: 'busy' }, signal);
  expect(await eventsOf(reason)).toMatchObject([
    { type: 'Warning', regarding: { kind: 'Service', name: 'busy', uid: metadata.uid } },
  ]);
});

describe('kubectl', () => {
  test.skipIf(!hasKubectl)('shows them', async () => {
    const all = await kubectl('get', 'events', '-A');
    expect(all).toMatch(new RegExp(`Normal +Starting +node/${node.nodeName}`));
    expect(all).toMatch(/Warning +FailedToStartServiceHealthcheck +service\/busy/);
    const described = await kubectl('describe', 'node', node.nodeName);
    expect(described).toMatch(/Normal +Starting +\d+s +kube-proxy/);
    expect(described).toMatch(/Warning +ForwardingRulesRepaired/);
    expect(await kubectl('describe', 'service', 'busy')).toMatch(
      /Warning +FailedToStartServiceHealthcheck +\d+s +kube-proxy/,
    );
  });
});

test('an account that may not write events costs one warning and nothing else', async () => {
  await agent.stop();
  using _ = cluster.server.faults.inject(
    { kind: 'status', status: 403, body: '{}' },
    { method: 'POST', target: /\/events$/ },
  );
  agent = cluster.startAgent(node);
  await waitForAgents(cluster.lab, [agent], signal);
  await damage();
  await until(async () => (await readLog(agent)).some(({ msg }) => msg === 'drift healed'));
  const warnings = (await readLog(agent)).filter(({ level, msg }) => level === 'warn' && msg.startsWith('events'));
  expect(warnings).toMatchObject([{ msg: expect.stringContaining('grant "create" and "patch"') as string }]);
  await agent.stop();
  expect(await agent.ended).toBe(0);
});
