import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type LabCluster,
  type LabCommandResult,
  type LabNode,
  startCluster,
  zeroapp,
  type ZeroappOptions,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { debianKubectl } from '../debian-kubectl.ts';
import type { WatchReport } from '../../src/rollout-watch/watch-report.ts';
import { unbalancedTags } from '../unbalanced-tags.ts';
import { agentDaemonSet, untilAnswered } from './rollout-site.ts';

// `rollout watch` with real agents, kubectl and requests: rollouts that lose, and one that does not.

const program = fileURLToPath(new URL('../../bin/kubectl-switchyard', import.meta.url));
const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const rate = 50;
let cluster: LabCluster;
let nodes: readonly [LabNode, LabNode];
let kubectl: string;
let folder: string;

beforeAll(async () => {
  const options = { name: 'rwatch', nodes: 2, ipFamilies: ['IPv4'], hasDaemonSets: true } as const;
  cluster = stack.use(await startCluster(options, signal));
  nodes = cluster.lab.nodes as unknown as [LabNode, LabNode];
  await cluster.startAgents({ args: ['--metrics-bind-address=0.0.0.0:10249'] }, signal);
  await cluster.api.create(apiResources.daemonSets, agentDaemonSet(), signal);
  kubectl = await debianKubectl(signal);
  folder = await mkdtemp(join(tmpdir(), 'rollout-watch-'));
  stack.defer(() => rm(folder, { recursive: true }));
});
afterAll(() => stack.disposeAsync());

/** Creates a Deployment with its Service, and returns the Service's cluster IP. */
async function create(options: ZeroappOptions): Promise<string> {
  const { deployment, service } = zeroapp({ externalTrafficPolicy: 'Cluster', ...options });
  const clusterIpOnly = {
    ...service,
    spec: { selector: service.spec?.selector ?? {}, ports: service.spec?.ports ?? [] },
  };
  const { spec } = await cluster.api.create(apiResources.services, clusterIpOnly, signal);
  await cluster.api.create(apiResources.deployments, deployment, signal);
  return spec?.clusterIP ?? '';
}

/** As `create`; returns the URL of the cluster IP when a pod answers there. */
async function deploy(options: ZeroappOptions): Promise<string> {
  const address = await create(options);
  await untilAnswered(nodes[0], address, signal);
  return `http://${address}/`;
}

/** Runs the plug-in on a node, where the cluster IP answers. */
function plugin(name: string, ...args: readonly string[]): Promise<LabCommandResult> {
  const all = ['rollout', 'watch', `deployment/${name}`, '--drain-time=0s', '--timeout=60', ...args];
  return nodes[0].run(program, [...all, `--kubeconfig=${cluster.insideKubeconfig}`], { env: { KUBECTL: kubectl } });
}

function agentFlags(): readonly string[] {
  return nodes.map((node) => `--agent=${node.nodeName}=http://${node.addresses.IPv4}:10249`);
}

test('a rollout without surge loses requests, each with a cause, as many as predicted', async () => {
  const url = await deploy({ name: 'gap', delayShutdown: 0, readyAfter: 3, maxSurge: 0, maxUnavailable: 1 });
  const page = join(folder, 'gap.html');
  const args = ['--restart', `--url=${url}`, `--rate=${rate}`, '--output=json', `--html=${page}`];
  const { stdout, stderr, exitCode } = await plugin('gap', ...args, ...agentFlags());
  expect(stderr).toBe('');
  const report = JSON.parse(stdout) as WatchReport;
  expect(exitCode).toBe(2);
  expect(report.end).toBeGreaterThan(report.begin);
  const lost = report.requests?.lost ?? [];
  expect(lost.length).toBeGreaterThan(rate);
  expect(lost.filter(({ cause }) => cause === 'unexplained')).toEqual([]);
  expect(report.requests?.isPredicted).toBe(true);
  expect(report.packets.length).toBeGreaterThan(0);
  // The old pod was deleted and removed, and then the new one became ready.
  expect(
    report.pods.map(({ isFormer, deleted, removed }) => [isFormer, deleted !== undefined, removed !== undefined]),
  ).toEqual([
    [true, true, true],
    [false, false, false],
  ]);
  expect(report.pods[1]?.ready).toBeGreaterThan(report.pods[0]?.deleted ?? Number.POSITIVE_INFINITY);
  for (const { accuracy, blindness } of report.nodes) {
    expect(blindness).toBeUndefined();
    expect(accuracy).toBeLessThan(200);
  }
  // Both nodes applied all that lasted: the going of the old endpoint, and the new one.
  const applied = report.changes.filter(({ condition }) => condition === 'ready' || condition === 'removed');
  expect(applied.length).toBeGreaterThanOrEqual(2);
  for (const change of applied) {
    expect(change).toMatchObject({ service: 'gap', applied: 2, missing: [] });
    expect(change.slowest?.delay).toBeLessThan(1000);
  }
  const html = await readFile(page, 'utf8');
  expect(unbalancedTags(html)).toEqual([]);
  expect(html).not.toMatch(/<script|src=|href=/);
  for (const { name } of report.pods) expect(html).toContain(`data-pod="${name}"`);
});

test('a rollout with surge and a preStop sleep loses nothing', async () => {
  const url = await deploy({ name: 'calm', delayShutdown: 0, preStopSleep: 2, maxSurge: 1, maxUnavailable: 0 });
  const { stdout, stderr, exitCode } = await plugin('calm', '--restart', `--url=${url}`, ...agentFlags());
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^Deployment default\/calm: the rollout of \S+ ended after \d+\.\d s$/m);
  expect(stdout).toMatch(/^nodes: 2 with an agent, whose times are right to \d+ ms$/m);
  expect(stdout).toMatch(/^calm-\S+ +node\d +before +before +\+\d+\.\d{3} s +\+\d+\.\d{3} s$/m);
  expect(stdout).toMatch(/^calm +\S+ +calm-\S+ +terminating +\+\S+ s +2 of 2 +node\d +\d\.\d{3} s$/m);
  expect(stdout).toMatch(/^Requests: \d{3,} to http:\S+, 50 a second, 0 lost$/m);
  expect(stdout).toMatch(/^in the cluster +calm +cluster IP +0 +0, inside the interval$/m);
  expect(exitCode).toBe(0);
});

test('without agents and requests it shows pods and EndpointSlices', async () => {
  await deploy({ name: 'plain', delayShutdown: 0, maxSurge: 1, maxUnavailable: 0 });
  const { stdout, stderr, exitCode } = await plugin('plain', '--restart');
  expect(stderr).toMatch(/nodes' applies and lost packets will not be seen: /);
  expect(stdout).toContain("no agent was watched: nodes' applies and lost packets are not known");
  expect(stdout).toMatch(/^plain +\S+ +plain-\S+ +ready +\+\S+ s$/m);
  expect(exitCode).toBe(0);
});

test('a rollout that cannot end is no success', async () => {
  await create({ name: 'stuck', readyAfter: 60 });
  const { stdout, exitCode } = await plugin('stuck', '--timeout=3', ...agentFlags());
  expect(stdout).toMatch(/did not end in time$/m);
  expect(exitCode).toBe(2);
});
