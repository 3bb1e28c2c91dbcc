import { HostError, InvariantError, millis, parseIp } from '@switchyard/core';
import { clusterCidrs, type Lab, type LabCluster, type WorkloadEvent } from '@switchyard/lab';
import {
  deployApp,
  explainFrom,
  healthCheckOf,
  hostSender,
  inBackground,
  labSite,
  loadBalancerTarget,
  nodePortTarget,
  prepareLoadBalancerHost,
  profiles,
} from '@switchyard/rollout';
import type { App, LoadTarget, RolloutSetup, Experiment } from '@switchyard/rollout';
import { labPace, shortenGrace } from './release-pods.ts';
import { hold, leaveNothing, portsOf, whenReady } from './rollout-app.ts';
import type { HoldTarget, PreparedRollout, RolloutCase } from '../../model/rollout.ts';
import type { TestEnvironment } from '../../model/test-environment.ts';

/** Seconds in the manifests, which the lab scales to tenths. Longer than any pod needs: `releasePods` ends old pods before. */
const gracePeriod = 600;
const rate = 40;
/** Less than the second after which a SYN is sent again: a request whose first packet was dropped is lost. */
const requestTimeout = millis(900);
const port = 80;
const echoPort = 7000;

/** The profile whose health checks always leave a node UP: docs/operate/health-check-profiles.md. */
const profile = 'switchyard';

/** Starts everything that a rollout needs, in a lab whose proxy runs on its first node. */
export async function prepareRollout(
  environment: Pick<TestEnvironment, 'lab' | 'cluster' | 'proxy'>,
  what: RolloutCase,
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
  const settings = rolloutSettings(what, { timeScale, delayShutdown: millis(gracePeriod * 1000 * timeScale) });
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
  const on = { setup, experiment };
  const targets = isLocal ? await localTargets(on, app, signal) : await clusterTargets(on, app, stack, signal);
  const owned = stack.move();
  return {
    setup,
    app,
    ...targets,
    pace: labPace,
    endPod: (pod, inner) => shortenGrace(experiment, app, pod, inner),
    explainAt: explainFrom({
      nodeAddresses: new Map(lab.nodes.map(({ name, addresses }) => [name, parseIp(addresses[family] ?? '')])),
      loadBalancer: parseIp(lab.loadBalancer.addresses[family] ?? ''),
      clusterCidr: clusterCidrs[family],
    }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Settings of a rollout whose old pods serve for `delayShutdown` unless they are released before. */
export function rolloutSettings(
  { dataplane }: RolloutCase,
  { timeScale, delayShutdown }: Pick<RolloutSetup['settings'], 'timeScale' | 'delayShutdown'>,
): RolloutSetup['settings'] {
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
    delayShutdown,
    timeScale,
  };
}

/** The lab and what happens to its pods from now on. */
function followWorkloads(lab: Lab, cluster: LabCluster): Experiment & AsyncDisposable {
  const workloadEvents: WorkloadEvent[] = [];
  const following = inBackground(async (signal) => {
    for await (const event of cluster.workloads.events(signal)) workloadEvents.push(event);
  });
  return { lab, cluster, ...labSite(lab), api: cluster.api, workloadEvents, ...following };
}

interface LabRollout {
  readonly setup: RolloutSetup;
  readonly experiment: Experiment;
}

interface Targets {
  readonly targets: readonly LoadTarget[];
  readonly holdTargets: readonly HoldTarget[];
}

/** Through the load balancer, and straight to the node that has the pod which goes first. */
async function localTargets({ setup, experiment }: LabRollout, app: App, signal: AbortSignal): Promise<Targets> {
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
  { setup, experiment }: LabRollout,
  app: App,
  stack: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Targets> {
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
    return { path, from: hostSender(from), address: clusterIp, port };
  });
  return {
    targets: [...fromOutside, ...inside],
    holdTargets: [
      ...fromOutside.map((target) => hold(target, nodePorts.echo)),
      ...inside.map((target) => hold(target, echoPort)),
    ],
  };
}
