import { hostCidr, type IpFamily, millis, parseIp } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type App, explainFrom, type LoadTarget, nodePortTarget } from '@switchyard/rollout';
import type { RolloutSetup, RolloutSite } from '@switchyard/rollout';
import { rolloutSettings } from '../cases/rollouts/prepare-rollout.ts';
import { hold, leaveNothing, portsOf, whenReady } from '../cases/rollouts/rollout-app.ts';
import type { PreparedRollout, RolloutCase, RolloutPace } from '../model/rollout.ts';
import type { ClusterPlace } from './cluster-connector.ts';
import { balancedTarget, observeBalancer } from './cluster-balancer.ts';
import { followPods } from './follow-pods.ts';
import { trafficSender } from './traffic-sender.ts';
import { appEchoPort, appPort, rolloutObjects } from './rollout-objects.ts';
import { podPort, type PodSettings } from './start-pods.ts';
import { callPod, callsOf } from './traffic-caller.ts';

/** Longer than any drain: `releasePods` ends old pods before. */
const gracePeriod = 180;

/** Factor of the pauses before and after a rollout, which are seconds. */
const timeScale = 0.25;

/**
 * Controllers and proxies of a cluster hear of a ready pod seconds later than the runner. Without a load balancer an old pod is needed
 * until another one is ready, however long that takes.
 */
const pace: RolloutPace = { margin: 4000, longest: 150_000, lineInterval: 500 };

/** Where rolling updates of a cluster run. */
export interface ClusterRolloutPlace extends Pick<ClusterPlace, 'caller' | 'senders' | 'nodes'> {
  readonly settings: PodSettings;
}

/** Deploys the app of a case in the namespace of the run, and returns the ways to it. */
export async function prepareClusterRollout(
  place: ClusterRolloutPlace,
  what: RolloutCase,
  _tell: (text: string) => void,
  signal: AbortSignal,
): Promise<PreparedRollout> {
  const { caller, senders, nodes } = place;
  const { kind, family } = what;
  const { api, namespace } = caller;
  await using stack = new AsyncDisposableStack();
  const name = `${kind.workload}-${kind.policy}-${family}`.toLowerCase();
  const app: App = { namespace, name, workload: kind.workload, port: appPort, ipFamilies: [family] };
  const { workloadEvents } = stack.use(followPods(api, app));
  const site: RolloutSite = {
    api,
    workloadEvents,
    nodes: [nodes.node1, nodes.node2],
    outside: trafficSender(callsOf(caller, senders.outside), signal),
  };
  const settings = rolloutSettings(what, { timeScale, delayShutdown: millis(gracePeriod * 1000) });
  stack.defer(() => leaveNothing(site, app));
  const objects = rolloutObjects({ kind, family, name, gracePeriod, nodes, settings: place.settings });
  if (kind.workload === 'deployment') await api.create(apiResources.deployments, objects.deployment, signal);
  else await api.create(apiResources.daemonSets, objects.daemonSet, signal);
  await api.create(apiResources.services, objects.service, signal);
  await whenReady(site, app, signal);
  const loadBalancer = kind.policy === 'Local' ? stack.use(await observeBalancer(site, app, signal)) : undefined;
  const setup: RolloutSetup = {
    experiment: site,
    proxies: { programs: [], syncs: () => undefined },
    loadBalancer,
    settings,
  };
  const rolled = { setup, app, family };
  const targets =
    loadBalancer === undefined ? await targetsOf(place, rolled, signal) : await balancedTargets(rolled, signal);
  const owned = stack.move();
  return {
    setup,
    app,
    ...targets,
    pace,
    endPod: async (pod, inner) => {
      const end = { name: 'end', argument: {} } as const;
      await callPod(caller, { name: pod.name, port: podPort }, end, inner);
    },
    explainAt: explainFrom({
      nodeAddresses: new Map(site.nodes.map((node) => [node.name, parseIp(node.addresses[family] ?? '')])),
      loadBalancer: parseIp(nodes.node2.addresses[family] ?? ''),
      // Explained are packets from outside, which no pod's address is needed for.
      clusterCidr: hostCidr(senders.pod.addresses[family] ?? parseIp('127.0.0.1')),
    }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

type Targets = Pick<PreparedRollout, 'targets' | 'holdTargets'>;

async function balancedTargets({ setup, app, family }: Rolled, signal: AbortSignal): Promise<Targets> {
  const target = await balancedTarget(setup, app, family, signal);
  return { targets: [target], holdTargets: [hold(target, appEchoPort)] };
}

interface Rolled {
  readonly setup: RolloutSetup;
  readonly app: App;
  readonly family: IpFamily;
}

/** From outside to the NodePort of the node under test, and from a pod and from that node to the cluster IP. */
async function targetsOf(
  { caller, senders, nodes }: ClusterRolloutPlace,
  { setup, app, family }: Rolled,
  signal: AbortSignal,
): Promise<Targets> {
  const { nodePorts, clusterIp } = await portsOf(setup.experiment, app, signal);
  const { node1 } = nodes;
  const nodePort = nodePortTarget(setup, { node: node1, ipFamily: family, endpoints: 'all', port: nodePorts.http });
  const inside = (['pod', 'node'] as const).map((from): LoadTarget => {
    const path = { kind: 'node', ipFamily: family, node: node1.name, endpoints: 'all', frontend: 'clusterIP' } as const;
    const name = `${from} to the cluster IP`;
    return {
      path: { ...path, name },
      from: trafficSender(callsOf(caller, senders[from]), signal),
      address: clusterIp,
      port: appPort,
    };
  });
  return {
    targets: [nodePort, ...inside],
    holdTargets: [hold(nodePort, nodePorts.echo), ...inside.map((target) => hold(target, appEchoPort))],
  };
}
