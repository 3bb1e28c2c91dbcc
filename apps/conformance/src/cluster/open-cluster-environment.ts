import { createHash, randomBytes } from 'node:crypto';
import { type Clock, ipFamilies, type IpFamily, type Random } from '@switchyard/core';
import { type ApiServerConnection, newObjectClient, type ObjectClient } from '@switchyard/core/kubernetes';
import { type DataplaneName, endpointPods } from '@switchyard/scenarios';
import { markerRounds } from '../engine/error-pace.ts';
import { healthPortOf, healthSeen } from '../lab/answers.ts';
import type { Ability } from '../model/case.ts';
import type { ProxyControl, TestEnvironment } from '../model/test-environment.ts';
import { type ClusterPlace, connectInCluster } from './cluster-connector.ts';
import { openClusterProxy } from './cluster-proxy.ts';
import { prepareClusterRollout } from './cluster-rollout.ts';
import { EchoPool } from './echo-pool.ts';
import { balancerObstacle, findController } from './load-balancing.ts';
import { markerPort, type MarkerPlace, passMarker } from './marker.ts';
import { AddressBook, ObjectWriter } from './object-writer.ts';
import { acceptsExternalIps, askProxyMode, createRunNamespace, type NodePair, preflight } from './preflight.ts';
import { removeAllRuns, removeNamespace, serviceFamilies } from './preflight.ts';
import { realName, realServices, realSlices } from './real-objects.ts';
import { type PodSettings, type PodStarter, startPods, type TrafficPod } from './start-pods.ts';
import { type ClusterTraits, onlyDisruptive, scenarioObstacle, stepObstacleOnCluster } from './step-obstacles.ts';
import { callPod, tryCallPod } from './traffic-caller.ts';

/** Settings of `--target cluster`. */
export interface ClusterEnvironmentOptions {
  readonly connection: ApiServerConnection;
  readonly clock: Clock;
  /** For names and ports that must differ between runs. Not derived from the run's seed. */
  readonly random: Random;
  /** Image of echo and probe pods. Default: the one that `./dev image conformance` builds. */
  readonly image?: string | undefined;
  /** Command instead of the image's own program, for images that have the program elsewhere. */
  readonly podCommand?: readonly string[] | undefined;
  /** Name of the node under test, and of the one that is the outside. Default: the first two that can be used, by name. */
  readonly nodes?: readonly [underTest: string, outside: string] | undefined;
  /** Go on although other Services of type LoadBalancer are there. */
  readonly mayHaveOtherLoadBalancers: boolean;
  /** Restart the proxy's pod on the node under test. */
  readonly isDisruptive: boolean;
  /** Load-balancer IPs come from the cluster's own controller. */
  readonly hasController: boolean;
  /** This process runs in a pod of the cluster. */
  readonly isInPod?: boolean;
  /** Leave everything in the cluster at the end. */
  readonly isKept: boolean;
  /** Column head of reports. Default: `cluster-` and the mode. */
  readonly proxyName?: string | undefined;
  /** Dataplane whose answers are expected. Default: the mode that the proxy on the node under test reports at `127.0.0.1:10249/proxyMode`. */
  readonly dataplane?: DataplaneName | undefined;
  /** One line for each step that takes its time. */
  readonly onProgress: (text: string) => void;
}

export const defaultImage = 'switchyard/conformance:0.1.0';

/** Longest clean-up after ^C, in milliseconds. */
const removalTimeout = 200_000;

export interface ClusterEnvironment extends TestEnvironment {
  /** The nodes that stand for node1, which is under test, and node2. */
  readonly nodes: NodePair;
}

/**
 * Opens an environment on a cluster: a namespace of its own, probe pods on two nodes, and echo pods as cases need them. Disposal, a failed
 * start and an abort by `signal` remove everything, unless `isKept` is set. Rejects with `ConfigError` if the cluster cannot be used.
 */
export async function openClusterEnvironment(
  options: ClusterEnvironmentOptions,
  signal: AbortSignal,
): Promise<ClusterEnvironment> {
  const { clock, random, isKept, onProgress } = options;
  await using stack = new AsyncDisposableStack();
  const api = stack.use(apiOf(options));
  const { nodes, otherRuns } = await preflight(api, options, signal);
  if (otherRuns.length > 0)
    onProgress(`there are ${otherRuns.join(', ')} of other runs; --cleanup removes what they left`);
  const run = randomName(random);
  const namespace = await createRunNamespace(api, run, signal);
  onProgress(`namespace ${namespace}; node under test ${nodes.node1.name}, outside ${nodes.node2.name}`);
  stack.defer(async () => {
    if (isKept) return onProgress(`kept: kubectl delete namespace ${namespace} removes everything`);
    onProgress(`removing namespace ${namespace}`);
    await removeNamespace(namespace, { api, clock, onProgress }, AbortSignal.timeout(removalTimeout));
  });
  const token = randomBytes(32).toString('hex'); // a secret, so not from the injected random numbers
  const starter: PodStarter = {
    caller: { api, namespace, token },
    settings: {
      run,
      namespace,
      image: options.image ?? defaultImage,
      command: options.podCommand,
      tokenDigest: createHash('sha256').update(token).digest('hex'),
    },
    clock,
    hostPort: () => 20_000 + Math.floor(random() * 9_000),
    onProgress,
  };
  onProgress('starting the pods');
  const { caller } = starter;
  const { senders, marker } = await startRunPods(starter, nodes, signal);
  const dataplane = options.dataplane ?? (await askProxyMode(caller, senders.node, signal));
  const ofPods = ipFamilies.filter((family) =>
    Object.values(senders).every((one) => one.addresses[family] !== undefined),
  );
  const families = await serviceFamilies(caller, ofPods, signal);
  const { isDisruptive } = options;
  const balancing = options.hasController ? await findController(caller, signal) : 'runner';
  const traits = {
    isDisruptive,
    balancing,
    hasZones: nodes.node1.zone !== undefined,
    hasExternalIps: await acceptsExternalIps(caller, signal),
  };
  const { addresses } = await callPod(caller, senders.node, { name: 'addresses', argument: {} }, signal);
  const book = new AddressBook(nodes);
  const pool = new EchoPool(starter, nodes);
  const place = { caller, run, senders, book, pool, nodes, nodeAddresses: addresses, balancing };
  const settled = settling({ ...place, clock, endpoint: marker, families, onProgress }, dataplane);
  const proxy = isDisruptive
    ? await openClusterProxy({ api, clock, node: nodes.node1.name, settled }, signal)
    : undefined;
  const owned = stack.move();
  return environmentOf({
    place,
    settings: starter.settings,
    settled,
    proxy,
    families,
    traits,
    noBalancer: balancerObstacle(balancing, options.isInPod === true),
    about: { name: options.proxyName ?? `cluster-${dataplane}`, dataplane, command: undefined },
    dispose: () => owned.disposeAsync(),
  });
}

/** Removes the namespaces of all earlier runs, including a run in progress, and returns their names. */
export async function cleanUpCluster(
  options: Pick<ClusterEnvironmentOptions, 'connection' | 'clock' | 'onProgress'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  await using api = apiOf(options);
  const { clock, onProgress } = options;
  return await removeAllRuns({ api, clock, onProgress }, signal);
}

/** Advice for users of `--target cluster`, by HTTP status; 0: no connection. */
const advice = {
  0: '; is the cluster of this kubeconfig up?',
  401: '; the credentials of the kubeconfig are not accepted',
  403: '; deploy/conformance/rbac.yaml has all the rights that are needed',
};

/** An API client whose errors advise the user. */
export function apiOf({ connection, clock }: Pick<ClusterEnvironmentOptions, 'connection' | 'clock'>): ObjectClient {
  return newObjectClient(connection, { clock, userAgent: 'switchyard-conformance', advice });
}

/** The pods that every run has; `marker` answers for markers. */
async function startRunPods(
  starter: PodStarter,
  { node1, node2 }: NodePair,
  signal: AbortSignal,
): Promise<{ readonly senders: ClusterPlace['senders']; readonly marker: TrafficPod }> {
  const plans = [
    { name: 'client', node: node1.name, isOnHostNetwork: false },
    { name: 'node', node: node1.name, isOnHostNetwork: true },
    { name: 'outside', node: node2.name, isOnHostNetwork: true },
    { name: 'marker', node: node2.name, isOnHostNetwork: false },
  ];
  type Four = readonly [TrafficPod, TrafficPod, TrafficPod, TrafficPod];
  const [pod, node, outside, marker] = (await startPods(starter, plans, signal)) as unknown as Four;
  const argument = { http: [], tcp: [markerPort], udp: [] };
  await callPod(starter.caller, marker, { name: 'listen', argument }, signal);
  return { senders: { pod, node, outside }, marker };
}

const letters = 'bcdfghjklmnpqrstvwxz0123456789';

function randomName(random: Random): string {
  return Array.from({ length: 6 }, () => letters[Math.floor(random() * letters.length)]).join('');
}

/** Waits for markers, one after another. */
function settling(place: MarkerPlace, dataplane: DataplaneName): ProxyControl['settled'] {
  let markers = 0;
  return async (signal) => {
    for (let left = markerRounds(dataplane); left > 0; left--) await passMarker(place, ++markers, signal);
  };
}

const abilitiesOnCluster = ['sendFromOutside', 'holdConnections', 'holdSockets', 'load', 'workloads'] as const;

/** Reasons why a cluster lacks an ability, where its name does not say it. */
const whyNotOnCluster: Readonly<Partial<Record<Ability, string>>> = {
  restartProxy: onlyDisruptive,
  controlProxy: 'a cluster starts its proxy again at once',
};

interface Parts {
  readonly place: ClusterPlace;
  readonly settings: PodSettings;
  readonly settled: ProxyControl['settled'];
  readonly proxy: ProxyControl | undefined;
  readonly families: readonly IpFamily[];
  readonly traits: ClusterTraits;
  /** Reason why no requests go through a load balancer of the cluster; undefined: they do. */
  readonly noBalancer: string | undefined;
  readonly about: TestEnvironment['proxyUnderTest'];
  readonly dispose: () => Promise<void>;
}

function environmentOf({
  place,
  settings,
  settled,
  proxy,
  families,
  traits,
  noBalancer,
  about,
  dispose,
}: Parts): ClusterEnvironment {
  const { caller, senders, book, pool } = place;
  const writer = new ObjectWriter({ api: caller.api, namespace: caller.namespace, book });
  let isDisposed = false;
  return {
    target: 'cluster',
    proxyUnderTest: about,
    ipFamilies: families,
    /** From outside only NodePorts can be reached: `stepObstacle` excludes other steps of scenarios and checks of sequences. */
    can: new Set<Ability>([
      ...abilitiesOnCluster,
      ...(proxy === undefined ? [] : (['restartProxy'] as const)),
      ...(noBalancer === undefined ? (['loadBalancer'] as const) : []),
    ]),
    whyNot: (ability) => (ability === 'loadBalancer' ? noBalancer : whyNotOnCluster[ability]),
    proxy,
    lab: undefined,
    cluster: undefined,
    prepareRollout: (...args) => prepareClusterRollout({ ...place, settings }, ...args),
    nodes: place.nodes,
    obstacle: (one) => (one.kind === 'scenario' ? scenarioObstacle(one.scenario, traits) : undefined),
    stepObstacle: (scenario, step) => stepObstacleOnCluster(scenario, step, traits),
    reset: async (_agent, signal) => {
      await writer.writeServices([], signal);
      await writer.writeSlices([], signal);
      book.clear();
      pool.clear();
      await settled(signal);
    },
    put: async (moments, { wait }, signal) => {
      // Pods of all states answer, also those that are no endpoints now: a wrong packet must show.
      const pods = moments.flatMap(({ scenario }) => [...endpointPods(scenario)]);
      await pool.provide(
        pods.map(([address, pod]) => ({ address, ...pod })),
        signal,
      );
      const services = moments.flatMap((moment) => realServices(moment, place));
      await writer.writeServices(services, signal);
      const slices = moments.flatMap((moment) => realSlices(moment, place));
      await writer.writeSlices(slices, signal);
      if (wait) await settled(signal);
    },
    connectorFor: (_scenario, flow, signal) => Promise.resolve(connectInCluster(flow, place, signal)),
    health: async (scenario, check, signal) => {
      const port = book.healthPorts.get(healthPortOf(scenario, check.service));
      if (port === undefined) return `the API server gave ${check.service} no healthCheckNodePort`;
      const probe = { protocol: 'http', address: book.nodeAddress(check.ipFamily), port } as const;
      const call = { name: 'probe', argument: { probes: [probe] } } as const;
      const [result] = (await callPod(caller, senders.outside, call, signal)).results;
      const real = { ...check, service: `${caller.namespace}/${realName(check.service)}` };
      return result === undefined ? 'no result' : healthSeen(result, real);
    },
    /** Reads the counters by the pod on the node's own network. An image of an older version does not know the call. */
    icmpErrorsHeldBack: async (signal) => {
      const outcome = await tryCallPod(caller, senders.node, { name: 'icmpErrors', argument: {} }, signal);
      return outcome.status === 'done' ? outcome.result.heldBack : undefined;
    },
    trace: () => Promise.resolve(["not followed: the kernel of a cluster's node is not looked into"]),
    // It has two owners; a second disposal would only repeat the messages of the first.
    [Symbol.asyncDispose]: async () => {
      if (isDisposed) return;
      isDisposed = true;
      await dispose();
    },
  };
}
