import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, type TestContext } from 'vitest';
import { zeroapp } from '../../src/index.ts';
import { until } from '@switchyard/core/testing';
import { type LabCluster, startLabCluster } from '../support/lab-cluster.ts';

const { signal } = new AbortController();
const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;
let cluster: LabCluster;
let kubeconfig: string;

beforeAll(async () => {
  cluster = await startLabCluster({ name: 'wkctl', nodes: 3, timeScale: 0.02, hasDaemonSets: true }, signal);
  kubeconfig = `${cluster.lab.folder}/kubeconfig`;
  writeFileSync(kubeconfig, cluster.server.kubeconfig(cluster.url));
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

test('kubectl apply, rollout status, restart, scale and delete end when the work is done', async ({ skip }) => {
  needKubectl(skip);
  // 75 of the lab's short seconds, 1.5 s: `rollout status` starts before the first new pod is ready.
  const { deployment, service } = zeroapp({ replicas: 2, readyAfter: 75 });
  const objects = [
    { apiVersion: 'apps/v1', kind: 'Deployment', ...deployment },
    { apiVersion: 'v1', kind: 'Service', ...service },
  ];
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
  expect(await kubectl(['apply', '-f', '-'], list)).toContain('deployment.apps/zeroapp created');
  expect(await kubectl(['rollout', 'status', 'deploy/zeroapp', '--timeout=30s'])).toContain('successfully rolled out');
  expect(await kubectl(['apply', '-f', '-'], list)).toContain('deployment.apps/zeroapp unchanged');

  const before = await podNames();
  expect(await kubectl(['rollout', 'restart', 'deploy/zeroapp'])).toContain('restarted');
  const status = await kubectl(['rollout', 'status', 'deploy/zeroapp', '--timeout=30s']);
  expect(status).toContain('1 out of 2 new replicas have been updated');
  expect(status).toContain('1 old replicas are pending termination');
  expect(status).toContain('successfully rolled out');
  const after = await podNames();
  expect(after.some((name) => before.includes(name))).toBe(false);

  await kubectl(['scale', 'deploy/zeroapp', '--replicas=3']);
  await kubectl(['rollout', 'status', 'deploy/zeroapp', '--timeout=30s']);
  expect((await podNames()).length).toBe(3);
  const endpoints = await kubectl(['get', 'endpointslices', '-l', 'kubernetes.io/service-name=zeroapp', '-o', 'name']);
  expect(endpoints.trim().split('\n').length).toBe(1);

  await kubectl(['delete', 'deploy/zeroapp', 'svc/zeroapp']);
  const nothingLeft = async (): Promise<boolean> =>
    (await kubectl(['get', 'pods,endpointslices,services', '-o', 'name'])).trim() === '';
  await until('all is gone', nothingLeft);
});

test('kubectl run and delete of a bare pod', async ({ skip }) => {
  needKubectl(skip);
  await kubectl(['run', 'bare', '--image=example.com/app']);
  expect(await kubectl(['wait', 'pod/bare', '--for=condition=Ready', '--timeout=20s'])).toContain('condition met');
  expect(await kubectl(['get', 'pod', 'bare', '--no-headers'])).toMatch(/bare\s+1\/1\s+Running\s+0\s/);
  expect(await kubectl(['delete', 'pod', 'bare'])).toContain('"bare" deleted');
  expect(await podNames()).not.toContain('bare');
});

test('kubectl drain moves the pods of a node elsewhere', async ({ skip }) => {
  needKubectl(skip);
  const { deployment } = zeroapp({ replicas: 1 });
  await kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deployment', ...deployment }));
  await kubectl(['rollout', 'status', 'deploy/zeroapp', '--timeout=30s']);
  const [pod] = await cluster.pods();
  const node = pod?.spec?.nodeName ?? '';
  const drained = await kubectl(['drain', node, '--timeout=30s']);
  // Debian's kubectl 1.20 knows only policy/v1beta1 evictions; against a newer server it deletes, and says so.
  expect(drained).toMatch(new RegExp(`pod/${pod?.metadata.name} (evicted|deleted)`));
  expect(drained).toMatch(new RegExp(`node/${node} (evicted|drained|deleted)`));
  await kubectl(['rollout', 'status', 'deploy/zeroapp', '--timeout=30s']);
  expect((await cluster.pods()).map(({ spec }) => spec?.nodeName)).not.toContain(node);
  await kubectl(['uncordon', node]);
  await kubectl(['delete', 'deploy/zeroapp']);
});
test('kubectl rollout restart and status of a DaemonSet that surges', async ({ skip }) => {
  needKubectl(skip);
  const { daemonSet } = zeroapp({
    name: 'everywhere',
    terminationGracePeriod: 5,
    delayShutdown: 5,
    maxSurge: 1,
    maxUnavailable: 0,
  });
  await kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'apps/v1', kind: 'DaemonSet', ...daemonSet }));
  await kubectl(['rollout', 'status', 'ds/everywhere', '--timeout=30s']);
  const before = await podNames();
  await kubectl(['rollout', 'restart', 'ds/everywhere']);
  expect(await kubectl(['rollout', 'status', 'ds/everywhere', '--timeout=30s'])).toContain('successfully rolled out');
  const after = await podNames();
  expect([before.length, after.length, after.filter((name) => before.includes(name))]).toEqual([3, 3, []]);
  expect(await kubectl(['get', 'ds', 'everywhere', '--no-headers'])).toMatch(/everywhere\s+3\s+3\s+3\s+3\s+3\s/);
  await kubectl(['delete', 'ds/everywhere']);
});

function needKubectl(skip: TestContext['skip']): void {
  if (!hasKubectl) skip('no kubectl on this machine: apt-get install kubernetes-client');
}

/** Pods without a deletionTimestamp. */
async function podNames(): Promise<readonly string[]> {
  const staying = (await cluster.pods()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return staying.map(({ metadata }) => metadata.name ?? '');
}

/** Output of both kinds; rejects on a non-zero exit. Never blocks: the API server lives in this process. */
function kubectl(args: readonly string[], stdin = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const fixed = ['--kubeconfig', kubeconfig, '--cache-dir', `${cluster.lab.folder}/kubectl-cache`];
    const child = spawn('kubectl', [...fixed, ...args], { signal });
    let text = '';
    child.stdout.on('data', (chunk) => (text += String(chunk)));
    child.stderr.on('data', (chunk) => (text += String(chunk)));
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(text);
      else reject(new Error(`kubectl ${args.join(' ')} ended with ${code}: ${text}`));
    });
    child.stdin.end(stdin);
  });
}
