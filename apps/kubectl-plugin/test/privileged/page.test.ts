import { fileURLToPath } from 'node:url';
import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { createProber, type LabCluster, startCluster, zeroapp } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openPage, type OpenPage } from './open-page.ts';

// The page of `kubectl switchyard ui` in a real browser, while the endpoints of a Service change.

const program = fileURLToPath(new URL('../../bin/kubectl-switchyard', import.meta.url));
const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const deployment = { namespace: 'default', name: 'zeroapp' };
let cluster: LabCluster;
let opened: OpenPage;
let clusterIp: string;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'page', nodes: 2, ipFamilies }, signal));
  const { nodes, apiServer } = cluster.lab;
  await cluster.startAgents({ args: ['--metrics-bind-address=0.0.0.0:10249'] }, signal);
  const app = zeroapp({ replicas: 1, port: 8080, delayShutdown: 1, terminationGracePeriod: 2 });
  clusterIp = (await cluster.api.create(apiResources.services, app.service, signal)).spec?.clusterIP ?? '';
  await cluster.api.create(apiResources.deployments, app.deployment, signal);
  const agents = nodes.map((node) => `--agent=${node.nodeName}=http://${node.addresses.IPv4}:10249`);
  apiServer.spawn(program, ['ui', '--port=8088', ...agents], { logName: 'ui' });
  const bothKnowIt =
    /"node1":\{"status":"applied","all":1,"cluster":1,.*"node2":\{"status":"applied","all":1,"cluster":1,/;
  const services = () => apiServer.run('curl', ['--silent', 'http://127.0.0.1:8088/api/services']);
  await vi.waitUntil(async () => bothKnowIt.test((await services()).stdout), { timeout: 60_000 });
  opened = stack.use(await openPage(apiServer, 'http://127.0.0.1:8088/'));
});
afterAll(() => stack.disposeAsync());

test('nodes and Services', async () => {
  const { page } = opened;
  await page.getByText('2 nodes, 1 Service ports').waitFor();
  expect(await page.locator('#nodes tr').allInnerTexts()).toMatchObject([
    expect.stringMatching(/^node\tmode\tversion/),
    expect.stringMatching(/^node1\tnftables\t.*\tIPv4\t1\t/),
    expect.stringMatching(/^node1\tnftables\t.*\tIPv6\t0\t/),
    expect.stringMatching(/^node2\tnftables\t.*\tIPv4\t1\t/),
    expect.stringMatching(/^node2\tnftables\t.*\tIPv6\t0\t/),
  ]);
  expect(await page.locator('#services tr').last().innerText()).toMatch(
    /^default\/zeroapp:http\/TCP\tIPv4\t1 \/ [01] of 1\t1 \/ [01] of 1$/,
  );
  expect(await page.locator('#rollouts').innerText()).toBe('no endpoints changed since this page was opened');
  expect(await page.locator('#losses').innerText()).toContain('none since this page was opened');
});

test('a rolling update on one clock', async () => {
  const { page } = opened;
  const template = { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' } } };
  await cluster.api.patch(
    apiResources.deployments,
    deployment,
    { kind: 'merge', body: { spec: { template } } },
    signal,
  );
  const bars = (state: string) => page.locator(`#rollouts rect[data-state=${state}]`);
  // The old pod, then the new one on the other node.
  await expect.poll(() => bars('used').count()).toBe(2);
  const text = await page.locator('#rollouts').innerText();
  expect(text).toMatch(/default\/zeroapp:http\/TCP IPv4/);
  expect(text).toMatch(/last change \d\d:\d\d:\d\d\.\d{3} on 2 nodes, at most \d+ ms apart; 0 packets lost/);
});

test('lost packets stand below the endpoints, and one shows its way', async () => {
  const { page } = opened;
  await cluster.api.patch(
    apiResources.deployments,
    deployment,
    { kind: 'merge', body: { spec: { replicas: 0 } } },
    signal,
  );
  await using prober = await createProber(cluster.lab.nodes[0] ?? cluster.lab.client, signal);
  const probe = () => prober.probe({ protocol: 'connect', address: clusterIp, port: 80, timeout: 300 });
  await expect.poll(async () => (await probe()).status).not.toBe('answered');
  const loss = page.locator('tr.loss', { hasText: 'noEndpoints' }).first();
  // The first packets may be lost to the pod that has just ended, which is another cause.
  await expect
    .poll(async () => {
      await probe();
      return loss.count();
    })
    .toBeGreaterThan(0);
  await page.locator('#rollouts rect[data-state=lost]').first().waitFor({ state: 'attached' });
  expect(await loss.innerText()).toMatch(/\tnode1\t.*default\/zeroapp:http\/TCP\t/);
  await loss.click();
  expect(await page.locator('#path svg').getAttribute('aria-label')).toBe('dropped at output');
  expect(await page.locator('#path').innerText()).toContain('Change: ');
  await expect.poll(() => page.locator('#services tr').last().innerText()).toMatch(/\d+ lost/);
  expect(opened.errors).toEqual([]);
});
