import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { millis, systemClock } from '@switchyard/core';
import { apiResources, defaultTls, fixedCredentials } from '@switchyard/core/kubernetes';
import { parseYaml } from '@switchyard/core/manifests';
import { type LabCluster, listenInNamespace, type PolicyRule, startCluster, trafficPodCommand } from '@switchyard/lab';
import { firstState } from '@switchyard/scenarios';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { catalogue } from '../../src/cases/catalogue.ts';
import {
  type ClusterEnvironment,
  type ClusterEnvironmentOptions,
  cleanUpCluster,
  openClusterEnvironment,
} from '../../src/cluster/open-cluster-environment.ts';
import { chooseCases } from '../../src/engine/select-cases.ts';
import { Gate } from '../../src/engine/error-pace.ts';
import { runRound } from '../../src/engine/run-round.ts';
import { seededRandom } from '../../src/engine/plan-units.ts';
import type { Seen } from '../../src/model/test-environment.ts';
import type { CaseResult } from '../../src/model/report-file.ts';

// For the runner this is a real cluster: it has nothing but an address, a token, and the rights of the manifest.

const { signal } = new AbortController();
const told: string[] = [];
let cluster: LabCluster;
let options: ClusterEnvironmentOptions;

beforeAll(async () => {
  cluster = await startCluster({ name: 'confclu', nodes: 2, ipFamilies: ['IPv4', 'IPv6'], timeScale: 0.1 }, signal);
  await cluster.startAgents({ proxyMode: 'nftables' }, signal);
  cluster.server.access.addUser({ name: 'conformance', token: 't', rules: await manifestRules() });
  options = {
    connection: { url: new URL(cluster.url), tls: defaultTls, credentials: fixedCredentials('Bearer t') },
    clock: systemClock,
    random: Math.random,
    mayHaveOtherLoadBalancers: false,
    isDisruptive: false,
    hasController: false,
    isKept: false,
    podCommand: trafficPodCommand(),
    onProgress: (text) => told.push(text),
  };
});

beforeEach(() => void told.splice(0));

afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
});

test('cases run in both families with the rights of the manifest alone, around a port that is taken, and leave nothing behind', async () => {
  // Both pods on the host's network would take orders there.
  const random = firstly(0.5, 8);
  const node1 = cluster.lab.nodes[0]!;
  const socket = await listenInNamespace({ namespace: node1.namespace, host: '::', port: 24_500 }, signal);
  const taken = createServer().listen(socket);
  let results: readonly CaseResult[];
  {
    await using environment = await openClusterEnvironment({ ...options, random }, signal);
    expect(environment.proxyUnderTest).toEqual({ name: 'cluster-nftables', dataplane: 'nftables', command: undefined });
    expect(environment.ipFamilies).toEqual(['IPv4', 'IPv6']);
    expect(told).toContain('port 24500 of node node1 is taken; trying another one');
    results = await run(environment, [
      'scenario/etp-local/ipv4',
      'scenario/health-check-node-port/ipv6',
      'matrix/nodePort/Local/ready-*/ipv6',
      'matrix/clusterIP/Cluster/terminating-*/ipv4',
      'sequence/{dual-stack/dual,udp-connected-socket/ipv6,udp-before-service/ipv6}',
    ]);
    const [skipped] = await run(environment, ['scenario/masquerade-all/ipv4']);
    expect([skipped?.status, skipped?.because]).toEqual(['skipped', 'needs what this cluster cannot: configureProxy']);
    expect(await withoutService(environment)).toEqual([]);
  }
  taken.close();
  expect(results.map(({ id, status, because, checks }) => [id, status, because, wrong(checks)])).toEqual(
    results.map(({ id }) => [id, 'passed', undefined, []]),
  );
  const etpLocal = results.find(({ id }) => id === 'scenario/etp-local/ipv4');
  // From another node to the node's port, with the sender's own address, and no longer when the only local endpoint is gone.
  const fromOutside = etpLocal?.checks.filter(({ what }) => what.startsWith('outside to 172.18.0.11:30080'));
  expect(fromOutside?.map(({ observed }) => observed)).toEqual(['forward to 10.244.1.5', 'drop']);
  expect(new Set(etpLocal?.skippedSteps?.map(({ because }) => because))).toEqual(
    new Set(["from outside only the node's own address can be reached"]),
  );
  expect(results.length).toBeGreaterThan(8);
  expect(await namespaces()).toEqual([]);
});

test('the namespace of a kept run is reported to the next one and removed by clean-up; an aborted start leaves nothing', async () => {
  await (await openClusterEnvironment({ ...options, isKept: true }, signal))[Symbol.asyncDispose]();
  const [left = ''] = await namespaces();
  expect(told.at(-1)).toBe(`kept: kubectl delete namespace ${left} removes everything`);
  const stop = new AbortController();
  const onProgress = (text: string): void => {
    told.push(text);
    if (text === 'starting the pods') setTimeout(() => stop.abort(new Error('enough')), 150);
  };
  await expect(openClusterEnvironment({ ...options, onProgress }, stop.signal)).rejects.toThrow('enough');
  expect(told).toContain(`there are ${left} of other runs; --cleanup removes what they left`);
  expect(await namespaces()).toEqual([left]);
  expect(await cleanUpCluster(options, signal)).toEqual([left]);
  expect(await namespaces()).toEqual([]);
});

test('the command, stopped by ^C in the middle of a case, says so, and leaves nothing behind', async () => {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const flags = [
    '--target',
    'cluster',
    '--kubeconfig',
    cluster.kubeconfig,
    '--pod-command',
    trafficPodCommand().join(' '),
  ];
  const args = ['--conditions=@switchyard/source', main, ...flags, '--case', 'scenario/session-affinity/*'];
  const command = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  command.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = once(command, 'exit');
  const services = async (): Promise<number> =>
    (await cluster.api.list(apiResources.services, {}, signal)).items.length;
  await vi.waitUntil(async () => command.exitCode !== null || (await services()) > 1, {
    timeout: 80_000,
    interval: 20,
  });
  command.kill('SIGINT');
  expect([(await ended)[0], said]).toEqual([3, expect.stringContaining('stopped by SIGINT')]);
  expect(await namespaces()).toEqual([]);
});

test('a pod that cannot start is reported with its node and its last words, and nothing is left', async () => {
  const podCommand = ['sh', '-c', 'echo no such program >&2; exit 3'];
  await expect(openClusterEnvironment({ ...options, podCommand }, signal)).rejects.toThrow(
    /pod \w+ on node node[12] has ended/,
  );
  expect(await namespaces()).toEqual([]);
});

test('a cluster with other load balancers is refused with their names, unless that is allowed; so is one with a single usable node', async () => {
  const spec = { type: 'LoadBalancer' as const, ports: [{ port: 80 }] };
  await cluster.api.create(apiResources.services, { metadata: { name: 'shop' }, spec }, signal);
  await expect(openClusterEnvironment(options, signal)).rejects.toThrow(
    /Services of type LoadBalancer .*: default\/shop; .*--allow-/,
  );
  const cordon = (unschedulable: boolean): Promise<unknown> =>
    cluster.api.patch(
      apiResources.nodes,
      { name: 'node2' },
      { kind: 'merge', body: { spec: { unschedulable } } },
      signal,
    );
  await cordon(true);
  const allowed = { ...options, mayHaveOtherLoadBalancers: true };
  await expect(openClusterEnvironment(allowed, signal)).rejects.toThrow(
    /of 2 there can be used node1: node2 is cordoned/,
  );
  await cordon(false);
  await cluster.api.delete(apiResources.services, { name: 'shop' }, {}, signal);
  expect(await namespaces()).toEqual([]);
});

function run(environment: ClusterEnvironment, globs: readonly string[]): Promise<readonly CaseResult[]> {
  const all = catalogue({ dataplane: environment.proxyUnderTest.dataplane, cell: 'dual' });
  const quiet = (): void => undefined;
  return runRound(
    {
      lanes: [{ name: 'cluster', environment }],
      cases: chooseCases(all, { globs, tags: [] }),
      run: { proxy: 'p', cell: 'dual', round: 1 },
      random: seededRandom(1),
      measuring: new Gate(1),
      onProgress: quiet,
      onFailure: quiet,
      isOver: () => false,
    },
    signal,
  );
}

/** Endpoints that answer at a cluster IP whose Service has just been removed. */
async function withoutService(environment: ClusterEnvironment): Promise<readonly Seen[]> {
  const [one] = chooseCases(catalogue({ dataplane: 'nftables', cell: 'dual' }), {
    globs: ['scenario/cluster-ip/ipv4'],
    tags: [],
  });
  const step = one?.kind === 'scenario' ? one.scenario.steps[0] : undefined;
  if (one?.kind !== 'scenario' || step?.kind !== 'flow') throw new Error('no such case');
  const { scenario } = one;
  await environment.reset(scenario.agent, signal);
  const state = firstState(scenario);
  await environment.put([{ scenario, state }], { wait: true }, signal);
  const connector = await environment.connectorFor(scenario, step.flow, signal);
  expect((await connector.attempts(2)).map(({ kind }) => kind)).toEqual(['endpoint', 'endpoint']);
  await environment.put([{ scenario, state: { ...state, services: new Map() } }], { wait: true }, signal);
  return (await connector.attempts(2)).filter(({ kind }) => kind === 'endpoint');
}

function wrong(checks: CaseResult['checks']): readonly string[] {
  return checks.filter((check) => !check.isAsExpected).map(({ what, observed }) => `${what}: ${observed}`);
}

async function namespaces(): Promise<readonly string[]> {
  await systemClock.sleep(millis(20), signal);
  const { items } = await cluster.api.list(apiResources.namespaces, {}, signal);
  return items.map(({ metadata }) => metadata.name ?? '').filter((name) => name.startsWith('switchyard-conformance'));
}

/** Rules of the ClusterRole that operators apply. */
async function manifestRules(): Promise<readonly PolicyRule[]> {
  const text = await readFile(new URL('../../../../deploy/conformance/rbac.yaml', import.meta.url), 'utf8');
  const objects = parseYaml(text).map(({ value }) => value as { readonly kind: string; readonly rules?: PolicyRule[] });
  return objects.find(({ kind }) => kind === 'ClusterRole')?.rules ?? [];
}

/** The same chance `count` times, and then any. */
function firstly(value: number, count: number): () => number {
  let left = count;
  return () => (left-- > 0 ? value : Math.random());
}
