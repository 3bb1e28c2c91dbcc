import { HostError, InvariantError, type IpFamily, millis, parseIp, type Millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { clusterCidrs, type Lab, type LabCluster, type WorkloadEvent } from '@switchyard/lab';
import {
  awaitCondition,
  deployApp,
  explainFrom,
  healthCheckOf,
  inBackground,
  loadBalancerTarget,
  nodePortTarget,
  prepareLoadBalancerHost,
  profiles,
  removeApp,
  servingPods,
} from '@switchyard/rollout';
import type { App, ExplainAt, LoadTarget, PodPlace, RolloutSetup, Experiment } from '@switchyard/rollout';
import type { DataplaneName } from '@switchyard/scenarios';
import type { HoldTarget } from './rollout-verdict.ts';
import type { RolloutKind } from './run-rollout-case.ts';
import type { TestEnvironment } from '../../model/test-environment.ts';

export interface RolloutCase {
  readonly kind: RolloutKind;
  readonly family: IpFamily;
  readonly dataplane: DataplaneName;
}

/** A deployed app and the ways to it. Disposing removes the app and stops what was started for it. */
export interface PreparedRollout extends AsyncDisposable {
  readonly setup: RolloutSetup;
  readonly app: App;
  readonly targets: readonly LoadTarget[];
  readonly holdTargets: readonly HoldTarget[];
  readonly explainAt: ExplainAt;
}

/** Seconds in the manifests, which the lab scales to tenths. Longer than any pod needs: `releasePods` ends old pods before. */
const gracePeriod = 300;
const rate = 40;
/** Less than the second after which a SYN is sent again: a request whose first packet was dropped is lost. */
const requestTimeout = millis(900);
/** Longest wait until pods are ready, and until all are removed. */
const readyTimeout = millis(30_000);
const port = 80;
const echoPort = 7000;

/** The profile whose health checks always leave a node UP: docs/operate/health-check-profiles.md. */
const profile = 'switchyard';

/** Starts everything that a rollout needs, on an environment whose proxy runs on its first node. */
export async function prepareRollout(
  what: RolloutCase,
  environment: Pick<TestEnvironment, 'lab' | 'cluster' | 'proxy'>,
  tell: (text: string) => void,
  signal: AbortSignal,
): Promise<PreparedRollout> {
  const { kind, family } = what;
  const { lab, cluster, proxy } = environment;
  if (lab === undefined || cluster === undefined || proxy === undefined) {
    throw new HostError('conformance.rollout', 'rollouts need a lab with its cluster and a proxy to control');
  }
  await using stack = new AsyncDisposableStack();
  const experiment = stack.use(followWorkloads(lab, cluster));
  stack.use(await proxy.onOtherNodes());
  const { timeScale } = cluster;
  const settings = settingsOf(what, timeScale);
  const isLocal = kind.policy === 'Local';
  const host = isLocal
    ? stack.use(await prepareLoadBalancerHost(experiment, { runtime: 'process', report: tell }, signal))
    : undefined;
  const loadBalancer = host === undefined ? undefined : stack.use(host.start(settings));
  const setup: RolloutSetup = { experiment, proxies: { programs: [], syncs: () => undefined }, loadBalancer, settings };
  const app = await deployApp(
    experiment,
    {
      name: `${kind.workload}-${kind.policy}-${family}`.toLowerCase(),
      workload: kind.workload,
      ...kind.strategy,
      externalTrafficPolicy: kind.policy,
      port,
      echoPort,
      ipFamilies: [family],
      delayShutdown: settings.delayShutdown,
      gracePeriod: settings.delayShutdown,
    },
    timeScale,
    signal,
  );
  stack.defer(() => leaveNothing(experiment, app));
  const targets = isLocal ? await localTargets(setup, app, signal) : await clusterTargets(setup, app, stack, signal);
  const owned = stack.move();
  return {
    setup,
    app,
    ...targets,
    explainAt: explainFrom({
      nodeAddresses: new Map(lab.nodes.map(({ name, addresses }) => [name, parseIp(addresses[family] ?? '')])),
      loadBalancer: parseIp(lab.loadBalancer.addresses[family] ?? ''),
      clusterCidr: clusterCidrs[family],
    }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function settingsOf({ dataplane }: RolloutCase, timeScale: number): RolloutSetup['settings'] {
  const ours = profiles.find(({ name }) => name === profile);
  if (ours === undefined) throw new InvariantError(`there is no health-check profile ${profile}`);
  return {
    terminatingFallback: true,
    proxyMode: dataplane,
    rate,
    requestTimeout,
    // How slow a busy machine answers does not scale.
    healthCheck: { ...healthCheckOf(ours, {}, timeScale), timeout: ours.timeout ?? ours.interval },
    runtime: 'process',
    fastDrain: false,
    delayShutdown: millis(gracePeriod * 1000 * timeScale),
    timeScale,
  };
}

/** The lab and what happens to its pods from now on. */
function followWorkloads(lab: Lab, cluster: LabCluster): Experiment & AsyncDisposable {
  const workloadEvents: WorkloadEvent[] = [];
  const following = inBackground(async (signal) => {
    for await (const event of cluster.workloads.events(signal)) workloadEvents.push(event);
  });
  return { lab, cluster, api: cluster.api, workloadEvents, ...following };
}

interface Targets {
  readonly targets: readonly LoadTarget[];
  readonly holdTargets: readonly HoldTarget[];
}

/** Through the load balancer, and straight to the node that has the pod which goes first. */
async function localTargets(setup: RolloutSetup, app: App, signal: AbortSignal): Promise<Targets> {
  const { experiment } = setup;
  const [ipFamily = 'IPv4'] = app.ipFamilies;
  const balanced = await loadBalancerTarget(setup, app, ipFamily, signal);
  const pods = await whenReady(experiment, app, signal);
  const node = experiment.lab.nodes.find(({ name }) => pods.some((pod) => pod.node === name));
  if (node === undefined) throw new HostError('conformance.rollout', `no pod of ${app.name} is on a node of the lab`);
  const { nodePorts } = await portsOf(experiment, app, signal);
  const direct = nodePortTarget(setup, { node, ipFamily, endpoints: 'own', port: nodePorts.http });
  const name = 'outside to the node of the first pod';
  const targets = [balanced, { ...direct, path: { ...direct.path, name } }];
  return {
    targets,
    holdTargets: targets.map((target) => hold(target, target === balanced ? echoPort : nodePorts.echo)),
  };
}

/** Straight to each node from outside, and to the cluster IP from a pod and from a node. */
async function clusterTargets(
  setup: RolloutSetup,
  app: App,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Targets> {
  const { experiment } = setup;
  const { lab } = experiment;
  const [ipFamily = 'IPv4'] = app.ipFamilies;
  await whenReady(experiment, app, signal);
  const { nodePorts, clusterIp } = await portsOf(experiment, app, signal);
  const fromOutside = lab.nodes.map((node) =>
    nodePortTarget(setup, { node, ipFamily, endpoints: 'all', port: nodePorts.http }),
  );
  const [first, last] = [lab.nodes[0], lab.nodes.at(-1)];
  if (first === undefined || last === undefined) throw new InvariantError('a lab without nodes');
  const client = await lab.addPod(first, `client-of-${app.name}`);
  stack.defer(() => lab.removePod(client));
  const inside = (
    [
      ['pod to the cluster IP', client, first],
      ['node to the cluster IP', last, last],
    ] as const
  ).map(([name, from, node]): LoadTarget => {
    const path = { kind: 'node', name, ipFamily, node: node.name, endpoints: 'all', frontend: 'clusterIP' } as const;
    return { path, from, address: clusterIp, port };
  });
  return {
    targets: [...fromOutside, ...inside],
    holdTargets: [
      ...fromOutside.map((target) => hold(target, nodePorts.echo)),
      ...inside.map((target) => hold(target, echoPort)),
    ],
  };
}

function hold({ path, from, address }: LoadTarget, echo: number): HoldTarget {
  return { path: path.name, from, address, port: echo };
}

async function whenReady(experiment: Experiment, app: App, signal: AbortSignal): Promise<readonly PodPlace[]> {
  const wanted = app.workload === 'deployment' ? 1 : experiment.lab.nodes.length;
  return awaitCondition(
    `${wanted} ready pods of ${app.name}`,
    async () => {
      const pods = servingPods(experiment.workloadEvents, app.name);
      return pods.length >= wanted ? pods : undefined;
    },
    { timeout: readyTimeout, programs: [], signal },
  );
}

async function portsOf(
  { api }: Experiment,
  app: App,
  signal: AbortSignal,
): Promise<{ readonly nodePorts: { readonly http: number; readonly echo: number }; readonly clusterIp: string }> {
  const { spec } = await api.get(apiResources.services, app, signal);
  const nodePort = (name: string): number => spec?.ports?.find((one) => one.name === name)?.nodePort ?? 0;
  return { nodePorts: { http: nodePort('http'), echo: nodePort('echo') }, clusterIp: spec?.clusterIP ?? '' };
}

/** Removes the app's objects and ends its processes without waiting for their grace periods. */
async function leaveNothing(experiment: Experiment, app: App): Promise<void> {
  const { api } = experiment;
  const signal = AbortSignal.timeout(readyTimeout);
  await removeApp(experiment, app, signal);
  const isGone = async (): Promise<true | undefined> => {
    const [service, pods] = await Promise.all([
      api.find(apiResources.services, app, signal),
      api.list(apiResources.pods, { namespace: app.namespace, labelSelector: `app=${app.name}` }, signal),
    ]);
    for (const { metadata } of pods.items) {
      const pod = { namespace: app.namespace, name: metadata.name ?? '' };
      await api.delete(apiResources.pods, pod, { gracePeriodSeconds: 0 }, signal);
    }
    return service === undefined && pods.items.length === 0 ? true : undefined;
  };
  await awaitCondition(`${app.name} to be gone`, isGone, { timeout: readyTimeout, programs: [], signal });
}

/** Ends old pods once no traffic needs them. Disposing ends the observation. */
export interface PodRelease extends AsyncDisposable {
  /** Time at which each old pod's grace period was cut short, by pod name. It served until then, and a moment longer. */
  readonly releasedAt: ReadonlyMap<string, Millis>;
}

/** Long enough to see that a terminating pod is used. */
const leastTerminating = 1200;
/** Between the moment a pod is no longer needed and its release, for packets in flight. */
const margin = 700;
/** A pod is released after this time even if it is still needed: a load balancer that never leaves it must show as losses. */
const longestTerminating = 12_000;
/** Last grace period, in the manifest's seconds: SIGKILL follows a tenth of a second later. */
const lastGrace = 1;
const period = millis(50);
/** Longest wait for the API server, in milliseconds. */
const patience = 10_000;

/**
 * Makes applications drain as they should on a machine of any speed. An old pod serves until the load balancer has left its node, or,
 * without a load balancer, until another pod is ready; then it ends. A grace period in seconds would be too long on a fast machine,
 * and too short on a slow one, where a pod may take seconds to start.
 */
export function releasePods(setup: RolloutSetup, app: App, oldPods: readonly PodPlace[]): PodRelease {
  const releasedAt = new Map<string, Millis>();
  const notNeededSince = new Map<string, Millis>();
  const { experiment, loadBalancer } = setup;
  const { workloadEvents, api } = experiment;
  /** Behind a load balancer until that has left the pod's node for another; else until another pod of the app is ready. */
  const isNeeded = ({ node }: PodPlace): boolean => {
    const others = servingPods(workloadEvents, app.name);
    if (loadBalancer === undefined) return others.length === 0;
    const isUsed = app.ipFamilies.some((ipFamily) => loadBalancer.healthOf({ ...app, ipFamily }).get(node) !== false);
    return isUsed || (oldPods.length < 2 && others.length === 0);
  };
  const look = async (pod: PodPlace): Promise<void> => {
    const now = systemClock.now();
    const going = workloadEvents.find(
      ({ kind, pod: name }) => kind === 'deletionTimestampSet' && name === pod.name,
    )?.at;
    if (going === undefined || releasedAt.has(pod.name)) return;
    if (isNeeded(pod)) notNeededSince.delete(pod.name);
    else if (!notNeededSince.has(pod.name)) notNeededSince.set(pod.name, now);
    const since = notNeededSince.get(pod.name);
    const isDone = since !== undefined && now - since >= margin && now - going >= leastTerminating;
    if (!isDone && now - going < longestTerminating) return;
    releasedAt.set(pod.name, now);
    const ref = { namespace: app.namespace, name: pod.name };
    await api.delete(apiResources.pods, ref, { gracePeriodSeconds: lastGrace }, AbortSignal.timeout(patience));
  };
  const looking = inBackground(async (signal) => {
    while (!signal.aborted) {
      await Promise.all(oldPods.map(look));
      await systemClock.sleep(period, signal).catch(() => undefined);
    }
  });
  return { releasedAt, ...looking };
}
