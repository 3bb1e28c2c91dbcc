import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ipFamilies } from '@switchyard/core';
import { type AgentOptions, type LabCluster, type LabNode, startCluster, waitForAgents } from '@switchyard/lab';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { until } from './agent-log.ts';

// A node whose agent cannot start: the program as shipped, a termination message file as kubelet makes it, and the API server's Events.

const { signal } = new AbortController();
let cluster: LabCluster;
let node: LabNode;
let terminationLog: string;

beforeAll(async () => {
  cluster = await startCluster({ name: 'startbad', nodes: 1, ipFamilies }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  terminationLog = join(cluster.lab.folder, 'termination-log');
});

beforeEach(() => writeFile(terminationLog, ''));

afterAll(() => cluster?.[Symbol.asyncDispose]());

interface ApiEvent {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  readonly reportingController: string;
  readonly regarding: { readonly kind: string; readonly name: string };
}

/** Events whose note contains a text. */
async function eventsWith(text: string): Promise<readonly ApiEvent[]> {
  const { items } = (await (await fetch(`${cluster.url}/apis/events.k8s.io/v1/events`)).json()) as {
    readonly items: readonly ApiEvent[];
  };
  return items.filter(({ note }) => note?.includes(text));
}

/** Runs an agent until it ends. Its stderr is in the log. */
async function runToEnd(args: readonly string[], options: AgentOptions = {}): Promise<string> {
  const env = { SWITCHYARD_TERMINATION_LOG: terminationLog, ...options.env };
  const agent = cluster.startAgent(node, { ...options, args, env });
  expect(await agent.ended).toBe(1);
  return readFile(agent.logFile, 'utf8');
}

const startFailed = (text: string): object => ({
  type: 'Warning',
  reason: 'SwitchyardStartFailed',
  reportingController: 'kube-proxy',
  regarding: { kind: 'Node', name: node.nodeName },
  note: expect.stringContaining(text) as string,
});

test.each([
  ['a refused mode', ['--proxy-mode=ipvs'], 'no ipvs mode'],
  ['an unknown flag', ['--bogus'], 'unknown flag --bogus'],
  [
    'a missing bpffs',
    ['--proxy-mode=ebpf', '--switchyard-ebpf-cgroup=/missing'],
    'this host cannot run --proxy-mode ebpf',
  ],
  [
    'a failing set-up',
    ['--proxy-mode=ebpf', '--switchyard-ebpf-cgroup=/missing', '--init-only'],
    'this host cannot run',
  ],
])('%s becomes the termination message and an Event of the Node', async (_what, args, text) => {
  const known = (await eventsWith(text)).length;
  const log = await runToEnd(args);
  expect(log).toContain(text);
  expect(log).toContain(await readFile(terminationLog, 'utf8'));
  expect(await readFile(terminationLog, 'utf8')).toContain(text);
  const events = await eventsWith(text);
  expect(events).toHaveLength(known + 1);
  expect(events.at(-1)).toMatchObject(startFailed(text));
});

test('a second agent says so, and the one that runs is not touched', async () => {
  const first = cluster.startAgent(node);
  await waitForAgents(cluster.lab, [first], signal);
  await runToEnd([]);
  expect(await readFile(terminationLog, 'utf8')).toContain('another agent runs on this node');
  expect(await eventsWith('another agent runs on this node')).toMatchObject([startFailed('another agent')]);
  await first.stop();
  expect(await first.ended).toBe(0);
});

test('without an API server the termination message remains, and the end comes within seconds', async () => {
  using _ = cluster.server.faults.inject(
    { kind: 'status', status: 503, body: '{}' },
    { method: 'POST', target: /\/events$/ },
  );
  const before = Date.now();
  await runToEnd(['--proxy-mode=ipvs']);
  expect(Date.now() - before).toBeLessThan(10_000);
  expect(await readFile(terminationLog, 'utf8')).toContain('no ipvs mode');
});

test('an agent that is stopped leaves no message, and a command neither', async () => {
  const agent = cluster.startAgent(node, { env: { SWITCHYARD_TERMINATION_LOG: terminationLog } });
  await waitForAgents(cluster.lab, [agent], signal);
  const command = cluster.startAgent(node, {
    args: ['--cleanup'],
    env: { SWITCHYARD_TERMINATION_LOG: terminationLog },
  });
  expect(await command.ended).toBe(1); // refused while an agent runs
  await agent.stop();
  expect(await agent.ended).toBe(0);
  expect(await readFile(terminationLog, 'utf8')).toBe('');
});

test('an agent that ends for another mode leaves the termination message alone', async () => {
  const config = join(cluster.lab.folder, 'changing.conf');
  const text = (mode: string): string =>
    [
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1',
      'kind: KubeProxyConfiguration',
      `mode: ${mode}`,
      `clientConnection: { kubeconfig: ${cluster.insideKubeconfig} }`,
      'healthzBindAddress: 0.0.0.0:10256',
      'conntrack: { maxPerCore: 0, min: 0 }',
      '',
    ].join('\n');
  await writeFile(config, text('nftables'));
  const env = { SWITCHYARD_TERMINATION_LOG: terminationLog };
  const agent = cluster.startAgent(node, { args: [`--config=${config}`], env });
  await waitForAgents(cluster.lab, [agent], signal);
  await writeFile(config, text('iptables'));
  await until(async () => (await readFile(terminationLog, 'utf8')) !== '');
  expect(await agent.ended).toBe(1);
  expect(await readFile(terminationLog, 'utf8')).toContain('ending for a restart');
  expect(await eventsWith('ending for a restart')).toEqual([]);
});
