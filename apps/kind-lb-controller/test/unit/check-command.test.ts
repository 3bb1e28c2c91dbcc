import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, systemClock } from '@switchyard/core';
import { apiResources, type Node, type ObjectClient } from '@switchyard/core/kubernetes';
import { type ApiServer, createApiClient, startApiServer, zeroapp, type ZeroappOptions } from '@switchyard/lab';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { healthProfiles } from '../../src/health-profile/health-profiles.ts';
import { runCheck } from '../../src/check/check-command.ts';

let stack: AsyncDisposableStack;
let server: ApiServer;
let api: ObjectClient;
let kubeconfig: string;
const signal = AbortSignal.timeout(60_000);

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  server = stack.use(await startApiServer());
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  api = stack.use(createApiClient({ url }));
  const folder = await mkdtemp(join(tmpdir(), 'swy-check-'));
  stack.defer(() => rm(folder, { recursive: true }));
  kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, server.kubeconfig(url));
  for (const name of ['node1', 'node2']) {
    const spec = { taints: [] };
    await api.create(apiResources.nodes, { metadata: { name }, spec } as unknown as Node, signal);
  }
});
afterEach(() => stack.disposeAsync());

const create = async (options: ZeroappOptions = {}): Promise<void> => {
  const { service, deployment } = zeroapp({ delayShutdown: 0, ...options });
  await api.create(apiResources.services, service, signal);
  await api.create(apiResources.deployments, deployment, signal);
};

async function check(...args: readonly string[]): Promise<{ readonly code: number; readonly text: string }> {
  let text = '';
  const io = { write: (more: string) => (text += more), env: {}, clock: systemClock };
  const code = await runCheck(['--kubeconfig', kubeconfig, ...args], io, signal);
  return { code, text };
}

describe('switchyard-lb check', () => {
  test('says what a rollout of the measured example costs, and that the app must serve for 16 s', async () => {
    await create();
    const { code, text } = await check('zeroapp');
    expect(code).toBe(2);
    expect(text).toContain('Service default/zeroapp: LoadBalancer, externalTrafficPolicy Local\n');
    expect(text).toContain(
      'Deployment zeroapp: 1 replica on 2 nodes, at most one per node; RollingUpdate with maxSurge 1',
    );
    expect(text).toMatch(/\n {2}cloud-provider-kind +10 to 15 s +16\.15 s +17 s +8\.\d+ s +10\.\d+ s +-\n/);
    expect(text).toMatch(/A rollout may lose requests\.\n$/);
  });
  test('exits with 0 once the hook lasts as long as it said', async () => {
    await create({ preStopSleep: 17 });
    expect(await check('zeroapp', '--drain-time=0s')).toMatchObject({
      code: 0,
      text: expect.stringContaining('Nothing is lost, even in the worst case.'),
    });
  });
  test('exits with 0 where no replicas are wanted, beside a warning that no pod answers', async () => {
    await create({ replicas: 0 });
    expect(await check('zeroapp')).toMatchObject({
      code: 0,
      text: expect.stringContaining('warning NoReplicas: replicas is 0'),
    });
  });
  test('prints the same as JSON, for all profiles', async () => {
    await create();
    const { code, text } = await check('zeroapp', '--health-check-profile=all', '--proxy=switchyard', '-o', 'json');
    const report = JSON.parse(text);
    expect(code).toBe(2);
    expect(report).toMatchObject({ service: 'default/zeroapp', proxy: 'switchyard', isLossless: false });
    expect(report.deployments[0].rows.map(({ profile }: { profile: string }) => profile)).toEqual(
      Object.keys(healthProfiles),
    );
  });
  test('asks the server for the Deployments that a Service selects, and no others', async () => {
    await create();
    const { deployment } = zeroapp({ name: 'other' });
    await api.create(apiResources.deployments, deployment, signal);
    expect((await check('zeroapp')).text).not.toContain('Deployment other');
    expect((await check('zeroapp', '--deployment', 'other')).text).toContain('Deployment other');
  });
  test('only reads', async () => {
    await create();
    const methods = new Set<string>();
    using _audit = server.access.audit(({ request }) => methods.add(request.verb));
    await check('zeroapp');
    expect([...methods].toSorted()).toEqual(['get', 'list']);
  });
  test('shows its flags', async () => {
    expect(await check('--help')).toMatchObject({ code: 0, text: expect.stringContaining('--drain-time') });
  });
  test.each<[what: string, args: readonly string[], message: RegExp]>([
    ['a Service that is not there', ['none'], /there is no Service default\/none; is --namespace right\?/],
    ['a Deployment that is not there', ['zeroapp', '--deployment=none'], /there is no Deployment default\/none; /],
    ['another namespace', ['zeroapp', '-n', 'kube-system'], /there is no Service kube-system\/zeroapp; /],
    ['no Service', [], /check: missing required argument 'service'/],
    ['an unknown profile', ['zeroapp', '--health-check-profile=elb'], /no health-check profile is called 'elb'/],
    ['an unknown proxy', ['zeroapp', '--proxy=cilium'], /Allowed choices are kube-proxy, kube-proxy-1.25, switchyard/],
    ['a duration without unit', ['zeroapp', '--drain-time=5'], /--drain-time: not a duration/],
  ])('refuses %s', async (_, args, message) => {
    await create();
    await expect(check(...args)).rejects.toThrow(ConfigError);
    await expect(check(...args)).rejects.toThrow(message);
  });
});
