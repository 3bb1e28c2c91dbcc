/*
 * Counts the requests that a real API server gets while pods end: with simulated agents alone, which read what kube-proxy reads; with the
 * drain gate, which learns from all of them what they have applied; and with its readiness gate. The counts are the server's own
 * (apiserver_request_total), without those of this program and of the server itself. Give it an API server without controllers: it makes Nodes,
 * EndpointSlices and Pods labelled switchyard-bench, and deletes them.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Clock, millis, seconds, systemClock } from '@switchyard/core';
import { apiResources, kubeconfigConnection, newObjectClient, type ObjectClient } from '@switchyard/core/kubernetes';
import { freePort } from '@switchyard/core/testing';
import { addressOf } from './simulated-agents.ts';

/** Options of the measurement. */
export interface ApiServerBench {
  readonly kubeconfig: string;
  readonly nodes: number;
  /** Pods that end in each phase, at even intervals. */
  readonly pods: number;
  /** Of one phase. */
  readonly minutes: number;
}

const clock: Clock = systemClock;
const { signal } = new AbortController();
const labels = { 'switchyard-bench': 'drain-gate' };
const namespace = 'default';
const agentProgram = fileURLToPath(new URL('../../../apps/node-agent/src/main.ts', import.meta.url));
const child = fileURLToPath(new URL('simulated-agents.ts', import.meta.url));
const conditionType = 'switchyard.dev/nodes-follow';

const phases = [
  { title: 'agents alone', gate: [] },
  { title: 'with the gate', gate: ['drain-gate'] },
  {
    title: 'with the readiness gate',
    gate: ['drain-gate', '--readiness-gate', '--readiness-gate-pods=switchyard-bench'],
  },
] as const;

/** Runs all phases and prints the table. */
export async function measureWithApiServer(options: ApiServerBench): Promise<void> {
  const { kubeconfig, nodes } = options;
  const connection = await kubeconfigConnection(kubeconfig, clock);
  await using api = newObjectClient(connection, { clock, userAgent: 'switchyard-bench' });
  const nodePort = await freePort('0.0.0.0');
  await cleanUp(api);
  try {
    await inParallel(nodes, async (index) => {
      const status = { addresses: [{ type: 'InternalIP', address: addressOf(index) }] };
      await api.create(apiResources.nodes, { metadata: { name: `bench-${index}`, labels }, status }, signal);
    });
    const begin = clock.monotonic();
    const agents = fork(child, [kubeconfig, String(nodes), String(nodePort)]);
    await once(agents, 'message');
    console.log(
      `${nodes} agents follow after ${Math.round((clock.monotonic() - begin) / 1000)} s; each phase has ${options.pods} pods and ${options.minutes} minutes`,
    );
    const results = [];
    for (const [index, { title, gate }] of phases.entries()) {
      const result = await runPhase({ api, options, gate, nodePort, first: index * options.pods });
      console.log(`${title}: ${describe(result)}`);
      results.push(result);
    }
    const [alone, ...others] = results;
    for (const [index, other] of others.entries())
      console.log(`${phases[index + 1]?.title}: ${comparison(alone, other)}`);
    agents.kill();
  } finally {
    await cleanUp(api);
  }
}

interface Phase {
  readonly api: ObjectClient;
  readonly options: ApiServerBench;
  readonly gate: readonly string[];
  readonly nodePort: number;
  /** Number of the first pod. */
  readonly first: number;
}

interface PhaseResult {
  /** Of the window between the two counts; late drains make it longer. */
  readonly minutes: number;
  /** By verb and resource. */
  readonly requests: ReadonlyMap<string, number>;
  /** Of the drains, in milliseconds. */
  readonly waits: readonly number[];
}

async function runPhase({ api, options, gate, nodePort, first }: Phase): Promise<PhaseResult> {
  const { kubeconfig, pods, minutes } = options;
  const before = await requestCounts(api);
  const begin = clock.monotonic();
  const end = begin + minutes * 60_000;
  const port = await freePort('127.0.0.1');
  const flags = [`--kubeconfig=${kubeconfig}`, `--bind-address=127.0.0.1:${port}`, `--node-port=${nodePort}`];
  const process = gate.length === 0 ? undefined : await startGate([...gate, ...flags], port);
  const isGated = gate.includes('--readiness-gate');
  const waits: number[] = [];
  const interval = (end - clock.monotonic() - 10_000) / pods;
  for (let index = 0; index < pods; index++) {
    const next = clock.monotonic() + interval;
    await oneReplacement({ api, index: first + index, isGated, port: process === undefined ? undefined : port, waits });
    await clock.sleep(millis(Math.max(0, next - clock.monotonic())), signal);
  }
  await clock.sleep(millis(Math.max(0, end - clock.monotonic())), signal);
  if (process !== undefined) {
    process.kill();
    await once(process, 'exit');
  }
  await clock.sleep(seconds(2), signal); // a watch is counted when it ends
  const after = await requestCounts(api);
  const lasted = (clock.monotonic() - begin) / 60_000;
  const requests = [...after].map(([key, count]) => [key, count - (before.get(key) ?? 0)] as const);
  return { minutes: lasted, requests: new Map(requests.filter(([, count]) => count > 0)), waits };
}

async function startGate(args: readonly string[], port: number): Promise<ChildProcess> {
  const running = spawn(process.execPath, ['--conditions=@switchyard/source', agentProgram, ...args], {
    stdio: 'ignore',
  });
  for (;;) {
    if (running.exitCode !== null) throw new Error(`the gate ended with ${running.exitCode}: ${args.join(' ')}`);
    const response = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    if (response?.ok === true) return running;
    await clock.sleep(millis(100), signal);
  }
}

interface Replacement {
  readonly api: ObjectClient;
  readonly index: number;
  readonly isGated: boolean;
  /** Of the gate; undefined without one. */
  readonly port: number | undefined;
  readonly waits: number[];
}

/** A pod becomes ready, in the last phase behind the readiness gate, and ends. */
async function oneReplacement({ api, index, isGated, port, waits }: Replacement): Promise<void> {
  const ip = `10.245.${index >> 8}.${index & 255}`;
  const name = `bench-${index}`;
  const slice = (ready: boolean, terminating: boolean) => ({
    metadata: { name, namespace, labels: { ...labels, 'kubernetes.io/service-name': 'bench' } },
    addressType: 'IPv4',
    ports: [{ port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: [ip], nodeName: 'bench-0', conditions: { ready, serving: true, terminating } }],
  });
  await api.create(apiResources.endpointSlices, slice(false, false), signal);
  if (isGated) await becomeReady(api, name, ip);
  await api.update(apiResources.endpointSlices, slice(true, false), signal);
  await clock.sleep(seconds(1), signal);
  const begin = clock.monotonic();
  await api.update(apiResources.endpointSlices, slice(false, true), signal);
  if (port === undefined) return;
  const response = await fetch(`http://127.0.0.1:${port}/drain?pod=${ip}&seconds=60`);
  if (response.status !== 200) throw new Error(`the gate answered ${response.status}: ${await response.text()}`);
  await response.text();
  waits.push(clock.monotonic() - begin);
}

async function becomeReady(api: ObjectClient, name: string, ip: string): Promise<void> {
  const ref = { namespace, name };
  const pod = {
    metadata: { ...ref, labels },
    spec: { nodeName: 'bench-0', readinessGates: [{ conditionType }], containers: [{ name: 'app', image: 'none' }] },
  };
  await api.create(apiResources.pods, pod, signal);
  const status = { phase: 'Running', podIPs: [{ ip }], conditions: [{ type: 'ContainersReady', status: 'True' }] };
  await api.updateStatus(apiResources.pods, { ...pod, status } as never, signal); // Wire types have more
  for (;;) {
    await clock.sleep(millis(200), signal);
    const now = await api.get(apiResources.pods, ref, signal);
    if (now.status?.conditions?.some(({ type, status: value }) => type === conditionType && value === 'True') === true)
      return;
  }
}

/** Requests of this program, which nothing else of the measurement makes. */
const ownRequests = /^(?:POST|PUT|DELETE|DELETECOLLECTION) (?:nodes|endpointslices|pods)|^GET pods |^PUT pods\/status/;

/** Counts of the API server by verb and resource. */
async function requestCounts(api: ObjectClient): Promise<ReadonlyMap<string, number>> {
  const { body } = await api.send({ method: 'GET', path: '/metrics' }, signal);
  const counts = new Map<string, number>();
  for (const [, text = '', value] of body.matchAll(/^apiserver_request_total\{(.*)\} (\S+)$/gm)) {
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(text)?.[1] ?? '';
    const subresource = label('subresource') === '' ? '' : `/${label('subresource')}`;
    const key = `${label('verb')} ${label('resource')}${subresource} `;
    if (label('system_client') !== '' || label('resource') === '' || ownRequests.test(key)) continue;
    counts.set(key, (counts.get(key) ?? 0) + Number(value));
  }
  return counts;
}

/** Requests a minute, and those of kinds that agents never make, which are the gate's alone. */
function comparison(alone: PhaseResult | undefined, { requests, minutes }: PhaseResult): string {
  if (alone === undefined) throw new Error('the first phase has agents alone');
  const usual = total(alone.requests) / alone.minutes;
  const more = total(requests) / minutes - usual;
  const own = total(new Map([...requests].filter(([key]) => !alone.requests.has(key)))) / minutes;
  const percent = (value: number): string => `${((100 * value) / usual).toFixed(2)} %`;
  return `${percent(more)} more requests a minute than ${usual.toFixed(0)}; of kinds that agents never make ${percent(own)}`;
}

function total(requests: ReadonlyMap<string, number>): number {
  return [...requests.values()].reduce((sum, count) => sum + count, 0);
}

function describe({ requests, waits, minutes }: PhaseResult): string {
  const parts = [...requests].toSorted(([, a], [, b]) => b - a).map(([key, count]) => `${key.trim()} ${count}`);
  const sorted = waits.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  const drains =
    median === undefined
      ? ''
      : `; drains: median ${Math.round(median)} ms, longest ${Math.round(sorted.at(-1) ?? 0)} ms`;
  return `${total(requests)} requests in ${(60 * minutes).toFixed(0)} s (${parts.join(', ')})${drains}`;
}

async function cleanUp(api: ObjectClient): Promise<void> {
  const selector = `labelSelector=${encodeURIComponent('switchyard-bench=drain-gate')}`;
  for (const path of [
    '/api/v1/nodes',
    `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`,
    `/api/v1/namespaces/${namespace}/pods`,
  ]) {
    const body = { gracePeriodSeconds: 0 };
    const { status, body: text } = await api.send({ method: 'DELETE', path: `${path}?${selector}`, body }, signal);
    if (status >= 300) throw new Error(`DELETE ${path} answered ${status}: ${text.slice(0, 300)}`);
  }
}

/** Calls `work` for each index, 16 at a time. */
async function inParallel(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}
