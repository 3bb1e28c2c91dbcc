import { fileURLToPath } from 'node:url';
import { millis } from '@switchyard/core';
import { apiResources, type Service } from '@switchyard/core/kubernetes';
import {
  type LabCluster,
  type LabCommandResult,
  type LabHost,
  type LoadRun,
  startCluster,
  startLoad,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { debianKubectl } from '../debian-kubectl.ts';
import type { RolloutReport } from '../../src/rollout/rollout-report.ts';
import { agentDaemonSet, untilAnswered } from './rollout-site.ts';

// `rollout check` of a Deployment, and then the rollout itself under open load, inside of the cluster and from outside.

const program = fileURLToPath(new URL('../../bin/kubectl-switchyard', import.meta.url));
const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const rate = 50;
let cluster: LabCluster;
let kubectl: string;
let paths: readonly { readonly clients: 'inside' | 'outside'; readonly from: LabHost; readonly url: string }[];

beforeAll(async () => {
  cluster = stack.use(
    await startCluster({ name: 'rollout', nodes: 2, ipFamilies: ['IPv4'], hasDaemonSets: true }, signal),
  );
  const { nodes, client } = cluster.lab;
  await cluster.startAgents({}, signal);
  await cluster.api.create(apiResources.daemonSets, agentDaemonSet(), signal);
  // The only pod goes before the next one is ready, 3 to 5 s later, and serves for no time after its deletion.
  const { deployment, service } = zeroapp({
    externalTrafficPolicy: 'Cluster',
    delayShutdown: 0,
    readyAfter: 3,
    maxSurge: 0,
    maxUnavailable: 1,
  });
  const nodePort: Service = { ...service, spec: { ...service.spec, type: 'NodePort' } };
  const { spec } = await cluster.api.create(apiResources.services, nodePort, signal);
  await cluster.api.create(apiResources.deployments, deployment, signal);
  const [node] = nodes;
  if (node === undefined) throw new Error('the lab has no node');
  paths = [
    { clients: 'inside', from: node, url: `http://${spec?.clusterIP}/` },
    { clients: 'outside', from: client, url: `http://${node.addresses.IPv4}:${spec?.ports?.[0]?.nodePort}/` },
  ];
  await untilAnswered(node, spec?.clusterIP ?? '', signal);
  kubectl = await debianKubectl(signal);
});
afterAll(() => stack.disposeAsync());

function plugin(...args: readonly string[]): Promise<LabCommandResult> {
  const all = ['rollout', 'check', 'deployment/zeroapp', `--rate=${rate}`, '--drain-time=0s', ...args];
  const flags = [`--kubeconfig=${cluster.insideKubeconfig}`];
  return cluster.lab.apiServer.run(program, [...all, ...flags], { env: { KUBECTL: kubectl } });
}

async function predicted(): Promise<RolloutReport> {
  const { stdout, stderr } = await plugin('--output=json');
  expect(stderr).toBe('');
  return JSON.parse(stdout) as RolloutReport;
}

/** Runs a script on the host of the API server, with kubectl. */
async function shell(script: string): Promise<void> {
  const folder = kubectl.replace(/\/kubectl$/, '');
  const env = { KUBECONFIG: cluster.insideKubeconfig, PATH: `${folder}:/usr/bin:/bin` };
  const { exitCode, stderr } = await cluster.lab.apiServer.run('sh', ['-ec', script], { env });
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
}

async function settle(): Promise<void> {
  await shell('kubectl rollout status deployment/zeroapp --timeout=60s >/dev/null');
  // The old pods have ended.
  const pods = async () => (await cluster.api.list(apiResources.pods, { namespace: 'default' }, signal)).items;
  await vi.waitUntil(async () => (await pods()).every(({ metadata }) => metadata.deletionTimestamp === undefined), {
    timeout: 60_000,
  });
}

/** Lost requests of a rollout, for each path. */
async function rollOut(): Promise<readonly number[]> {
  const loads = paths.map(({ from, url }) => stack.use(startLoad(from, { url, rate, duration: millis(120_000) })));
  await pause(1500);
  await shell('kubectl rollout restart deployment/zeroapp >/dev/null');
  await settle();
  await pause(1500);
  return Promise.all(loads.map(lostOf));
}

async function lostOf(load: LoadRun): Promise<number> {
  const results = await load.stop();
  expect(results.length).toBeGreaterThan(rate);
  return results.filter(({ outcome }) => outcome !== 'answered').length;
}

function pause(duration: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, duration));
}

test('a rollout that loses requests loses as many as predicted', async () => {
  const { exitCode, stdout } = await plugin();
  expect(exitCode).toBe(2);
  expect(stdout).toContain('proxy: switchyard (DaemonSet kube-system/switchyard), applies a change after 10 to 120 ms');
  expect(stdout).toMatch(/^in the cluster +zeroapp +cluster IP +\d+ to \d+ +\d+$/m);
  expect(stdout).toMatch(/^outside +zeroapp +NodePort, Cluster +\d+ to \d+ +\d+$/m);
  expect(stdout).toContain('maxUnavailable 1 lets all pods go before the first new one is ready');
  const report = await predicted();
  expect(report.isLossless).toBe(false);
  const lost = await rollOut();
  for (const [index, { clients }] of paths.entries()) {
    const { least = 0, most = 0 } = report.paths.find((path) => path.clients === clients)?.requests ?? {};
    expect(least).toBeGreaterThan(rate);
    expect(lost[index]).toBeGreaterThanOrEqual(least);
    expect(lost[index]).toBeLessThanOrEqual(most);
  }
});

test('with the patch that it prints nothing is lost, as predicted', async () => {
  const { stdout } = await plugin();
  const [script = ''] = /^kubectl patch deployment zeroapp -n default .*END$/ms.exec(stdout) ?? [];
  expect(script).toContain('maxUnavailable: 0');
  await shell(script.replace('\n', ' >/dev/null\n'));
  await settle();
  const after = await plugin();
  expect(after.stdout).toContain('Nothing will be lost, even in the worst case.');
  expect(after.exitCode).toBe(0);
  expect(await rollOut()).toEqual([0, 0]);
});

test('an unknown Deployment is an error, with exit status 1', async () => {
  const { exitCode, stderr } = await cluster.lab.apiServer.run(
    program,
    ['rollout', 'check', 'deployment/none', `--kubeconfig=${cluster.insideKubeconfig}`],
    { env: { KUBECTL: kubectl } },
  );
  expect(stderr).toMatch(/get deployments\.apps\/none .*NotFound/);
  expect(exitCode).toBe(1);
});
