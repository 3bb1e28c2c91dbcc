import { HostError, type Millis, millis, systemClock } from '@switchyard/core';
import { apiResources, createProber, type LoadResult, startLoad, zeroapp } from '@switchyard/lab';
import { awaitCondition } from './await-condition.ts';
import { observeHealth } from './observe-health.ts';
import { endpointMoments, observeSlices, type SliceObserver } from './observe-slices.ts';
import { podMoments } from './pod-moments.ts';
import { readLoadBalancer, readLogFile, readSyncs } from './read-logs.ts';
import type { HealthMoment, PodMoment, RequestRecord, RunRecord, RunSettings } from './run-record.ts';
import { setStage, type Stage } from './stage.ts';

/** Told what happens while it happens. */
export interface RolloutProgress {
  step(text: string): void;
  /** The load has started; `oldPod` is who answers now. */
  loadStarted(at: Millis, oldPod: string): void;
  request(request: RequestRecord): void;
  loadEnded(): void;
}

/** Seconds of load before the rollout, and after the old pod is gone; scaled like everything else. */
const leadSeconds = 4;
const tailSeconds = 2.5;
const app = 'zeroapp';
const service = { namespace: 'default', name: app };
const settleTimeout = millis(60_000);

/** One rolling update in a fresh lab, observed from all sides. Rejects when a part of the experiment itself failed. */
export async function runRollout(
  options: { readonly labName: string; readonly settings: RunSettings },
  progress: RolloutProgress,
  signal: AbortSignal,
): Promise<RunRecord> {
  const { settings } = options;
  progress.step('setting up two nodes, an API server, two agents and HAProxy');
  await using stage = await setStage({ name: options.labName, settings }, signal);
  await deployApp(stage, settings, signal);
  const oldPod = await awaitSettled(stage, signal);
  progress.step(`${oldPod} answers through HAProxy; waiting a moment, so that the health checks' phase is random`);
  await systemClock.sleep(millis((1 + 5 * Math.random()) * 1000 * settings.timeScale), signal);

  const nodePort = await healthCheckNodePort(stage, signal);
  await using slices = await observeSlices(stage.api, service, signal);
  await using prober = await createProber(stage.lab.client, signal);
  const health = observeHealth({
    prober,
    nodes: stage.lab.nodes,
    port: nodePort,
    period: millis(100 * Math.max(0.2, settings.timeScale)),
  });
  const startedAt = systemClock.now();
  const results = await loadDuringRollout(stage, { settings, oldPod, progress }, signal);
  await health[Symbol.asyncDispose]();
  return assemble(stage, { settings, oldPod, startedAt, results, health: health.moments, slices });
}

async function deployApp(stage: Stage, settings: RunSettings, signal: AbortSignal): Promise<void> {
  // Seconds of real time: the workloads scale them.
  const delayShutdown = settings.delayShutdown / 1000 / settings.timeScale;
  const objects = zeroapp({ name: app, delayShutdown, terminationGracePeriod: Math.max(30, delayShutdown) });
  await stage.api.create(apiResources.deployments, objects.deployment, signal);
  await stage.api.create(apiResources.services, objects.service, signal);
}

/** Waits until the app answers through the load balancer and HAProxy has dropped the node without a pod. */
async function awaitSettled(stage: Stage, signal: AbortSignal): Promise<string> {
  const programs = [...stage.agents.values(), stage.loadBalancer];
  await using prober = await createProber(stage.lab.client, signal);
  const pod = await awaitCondition(
    'the first answer through the load balancer',
    async () => {
      const result = await prober.probe({
        protocol: 'http',
        address: stage.loadBalancerAddress,
        port: 80,
        timeout: 500,
      });
      return result.status === 'answered' ? result.by : undefined;
    },
    { timeout: settleTimeout, programs, signal },
  );
  await awaitCondition(
    'HAProxy to find out which node has no pod',
    async () => ([...serversOf(stage).values()].includes(false) ? true : undefined),
    { timeout: settleTimeout, programs, signal },
  );
  return pod;
}

async function healthCheckNodePort(stage: Stage, signal: AbortSignal): Promise<number> {
  const found = await stage.api.get(apiResources.services, service, signal);
  const port = found.spec?.healthCheckNodePort;
  if (port === undefined) throw new HostError('rollout.service', `Service ${app} was given no healthCheckNodePort`);
  return port;
}

interface LoadContext {
  readonly settings: RunSettings;
  readonly oldPod: string;
  readonly progress: RolloutProgress;
}

/** Open-loop load before, during and after `kubectl rollout restart`, until the old pod is gone. */
async function loadDuringRollout(
  stage: Stage,
  context: LoadContext,
  signal: AbortSignal,
): Promise<readonly RequestRecord[]> {
  const { settings, progress } = context;
  const scaled = (seconds: number): Millis => millis(seconds * 1000 * settings.timeScale);
  const { interval, fall, rise } = settings.healthCheck;
  const longest = millis(settings.delayShutdown * 2 + (fall + rise) * interval * 2 + 60_000);
  const programs = [...stage.agents.values(), stage.loadBalancer];
  await using load = startLoad(stage.lab.client, {
    url: `http://${stage.loadBalancerAddress}/`,
    rate: settings.rate,
    timeout: settings.requestTimeout,
    duration: longest,
  });
  progress.loadStarted(systemClock.now(), context.oldPod);
  const showing = show(load, progress);
  showing.catch(() => undefined); // awaited below; when this ends early, the load is killed and nobody asks
  await systemClock.sleep(scaled(leadSeconds), signal);
  progress.step('kubectl rollout restart deployment/zeroapp');
  await restart(stage, signal);
  await awaitCondition(
    'the old pod to be gone',
    async () =>
      stage.workloadEvents.some((event) => event.kind === 'objectGone' && event.pod === context.oldPod)
        ? true
        : undefined,
    { timeout: longest, programs, signal },
  );
  // An app that stops early is gone long before HAProxy notices, and requests are lost until it does.
  await awaitCondition(
    'HAProxy to use the new node only',
    async () => (hasMovedFrom(nodeOf(stage, context.oldPod), serversOf(stage)) ? true : undefined),
    { timeout: longest, programs, signal },
  );
  await systemClock.sleep(scaled(tailSeconds), signal);
  const results = await load.stop();
  await showing;
  progress.loadEnded();
  return results.map(requestOf);
}

/** Which nodes HAProxy holds UP now. */
function serversOf(stage: Stage): ReadonlyMap<string, boolean> {
  const start = { at: stage.loadBalancerStartedAt, nodes: [] };
  const moments = readLoadBalancer(readLogFile(stage.eventLog), `${service.namespace}/${service.name}`, start);
  return new Map(moments.map((moment) => [moment.node, moment.isUp]));
}

function hasMovedFrom(oldNode: string, servers: ReadonlyMap<string, boolean>): boolean {
  return servers.get(oldNode) === false && [...servers.values()].includes(true);
}

function nodeOf(stage: Stage, pod: string): string {
  return podMoments(stage.workloadEvents, app).find((moment) => moment.pod === pod)?.node ?? '';
}

async function show(load: AsyncIterable<LoadResult>, progress: RolloutProgress): Promise<void> {
  for await (const result of inOrder(load)) progress.request(requestOf(result));
}

/** Results come as they end; a lost request ends half a second after its successors. Readers want the order of sending. */
async function* inOrder(load: AsyncIterable<LoadResult>): AsyncIterable<LoadResult> {
  const early = new Map<number, LoadResult>();
  let next = 0;
  for await (const result of load) {
    early.set(result.sequence, result);
    for (let found = early.get(next); found !== undefined; found = early.get(next)) {
      early.delete(next);
      next += 1;
      yield found;
    }
  }
}

function requestOf(result: LoadResult): RequestRecord {
  const { sequence, scheduledAt, sentAt, doneAt, outcome, answeredBy } = result;
  return { sequence, scheduledAt, sentAt, doneAt, outcome, answeredBy };
}

/** The patch that `kubectl rollout restart` sends. */
async function restart(stage: Stage, signal: AbortSignal): Promise<void> {
  const annotations = { 'kubectl.kubernetes.io/restartedAt': new Date(systemClock.now()).toISOString() };
  const body = { spec: { template: { metadata: { annotations } } } };
  await stage.api.patch(apiResources.deployments, service, { kind: 'strategic', body }, signal);
}

interface Observed {
  readonly settings: RunSettings;
  readonly oldPod: string;
  readonly startedAt: Millis;
  readonly results: readonly RequestRecord[];
  readonly health: readonly HealthMoment[];
  readonly slices: SliceObserver;
}

function assemble(stage: Stage, observed: Observed): RunRecord {
  const nodes = stage.lab.nodes.map((node) => node.name);
  const pods = podMoments(stage.workloadEvents, app);
  const [oldPod, newPod] = bothPods(pods, observed.oldPod);
  const deletedAt = pods.find((moment) => moment.pod === oldPod.name && moment.phase === 'deleting')?.at;
  if (deletedAt === undefined) throw new HostError('rollout.events', `no event says that ${oldPod.name} was deleted`);
  const syncs = [...stage.agents].flatMap(([node, agent]) => readSyncs(readLogFile(agent.logFile), node));
  return {
    settings: observed.settings,
    startedAt: observed.startedAt,
    endedAt: systemClock.now(),
    nodes,
    oldPod,
    newPod,
    deletedAt,
    requests: observed.results,
    pods,
    endpoints: endpointMoments(observed.slices.states, nodes),
    syncs: syncs.sort((a, b) => a.at - b.at),
    health: observed.health,
    loadBalancer: readLoadBalancer(readLogFile(stage.eventLog), 'default/zeroapp', {
      at: stage.loadBalancerStartedAt,
      nodes,
    }),
    states: observed.slices.states,
  };
}

type PodPlace = RunRecord['oldPod'];

function bothPods(pods: readonly PodMoment[], oldName: string): readonly [PodPlace, PodPlace] {
  const place = (name: string): PodPlace => ({ name, node: pods.find((moment) => moment.pod === name)?.node ?? '' });
  const newName = pods.findLast((moment) => moment.pod !== oldName && moment.phase === 'ready')?.pod;
  if (newName === undefined) throw new HostError('rollout.events', 'the rollout made no new pod that became ready');
  return [place(oldName), place(newName)];
}
