import { createHash, randomBytes } from 'node:crypto';
import { ipFamilies, type Random } from '@switchyard/core';
import { newObjectClient, type ObjectClient } from '@switchyard/core/kubernetes';
import { AddressBook } from './address-book.ts';
import type { NodePair } from './choose-nodes.ts';
import { ClusterEnvironment, type ClusterEnvironmentParts } from './cluster-environment.ts';
import type { Senders } from './cluster-connector.ts';
import { type ClusterEnvironmentOptions, defaultImage } from './cluster-options.ts';
import { EchoPool } from './echo-pool.ts';
import { Markers, markerPort } from './marker.ts';
import { ObjectWriter } from './object-writer.ts';
import { preflight } from './preflight.ts';
import { askProxyMode } from './proxy-mode.ts';
import { acceptsExternalIps, serviceFamilies } from './service-traits.ts';
import { createRunNamespace, removeAllRuns, removeNamespace } from './run-namespace.ts';
import { type PodStarter, startPods, type TrafficPod } from './start-pods.ts';
import { callPod } from './traffic-caller.ts';

/** Longest clean-up after ^C, in milliseconds. */
const removalTimeout = 200_000;

/**
 * Opens an environment on a cluster: a namespace of its own, probe pods on two nodes, and echo pods as cases need them. Disposal, a failed
 * start and an abort by `signal` remove everything, unless `isKept` is set. Rejects with `ConfigError` if the cluster cannot be used.
 */
export async function openClusterEnvironment(
  options: ClusterEnvironmentOptions,
  signal: AbortSignal,
): Promise<ClusterEnvironment> {
  const { clock, random, isKept = false, onProgress = () => undefined } = options;
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
  const pods = await startRunPods(starter, nodes, signal);
  const parts = await environmentParts(options, { nodes, starter, pods }, signal);
  const owned = stack.move();
  return new ClusterEnvironment({ ...parts, dispose: () => owned.disposeAsync() });
}

/** Removes the namespaces of all earlier runs, including a run in progress, and returns their names. */
export async function cleanUpCluster(
  options: Pick<ClusterEnvironmentOptions, 'connection' | 'clock' | 'onProgress'>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  await using api = apiOf(options);
  const { clock, onProgress = () => undefined } = options;
  return removeAllRuns({ api, clock, onProgress }, signal);
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

/** The pods that every run has. */
interface RunPods {
  readonly senders: Senders;
  /** Answers for markers. */
  readonly marker: TrafficPod;
}

async function startRunPods(starter: PodStarter, { node1, node2 }: NodePair, signal: AbortSignal): Promise<RunPods> {
  const plans = [
    { name: 'client', node: node1.name, isOnHostNetwork: false },
    { name: 'node', node: node1.name, isOnHostNetwork: true },
    { name: 'outside', node: node2.name, isOnHostNetwork: true },
    { name: 'marker', node: node2.name, isOnHostNetwork: false },
  ];
  const [pod, node, outside, marker] = (await startPods(starter, plans, signal)) as [
    TrafficPod,
    TrafficPod,
    TrafficPod,
    TrafficPod,
  ];
  const argument = { http: [], tcp: [markerPort], udp: [] };
  await callPod(starter.caller, marker, { name: 'listen', argument }, signal);
  return { senders: { pod, node, outside }, marker };
}

async function environmentParts(
  options: ClusterEnvironmentOptions,
  { nodes, starter, pods }: { readonly nodes: NodePair; readonly starter: PodStarter; readonly pods: RunPods },
  signal: AbortSignal,
): Promise<Omit<ClusterEnvironmentParts, 'dispose'>> {
  const { caller, settings, clock, onProgress } = starter;
  const { senders, marker } = pods;
  const { api, namespace } = caller;
  const { run } = settings;
  const dataplane = options.dataplane ?? (await askProxyMode(caller, senders.node, signal));
  const families = ipFamilies.filter((family) =>
    [senders.pod, senders.node, senders.outside].every(({ addresses }) => addresses[family] !== undefined),
  );
  const ofServices = await serviceFamilies(caller, families, signal);
  const book = new AddressBook(nodes);
  const pool = new EchoPool(starter, nodes);
  const { addresses } = await callPod(caller, senders.node, { name: 'addresses', argument: {} }, signal);
  return {
    proxyUnderTest: { name: options.proxyName ?? `cluster-${dataplane}`, dataplane, command: undefined },
    ipFamilies: ofServices,
    nodes,
    traits: { hasZones: nodes.node1.zone !== undefined, hasExternalIps: await acceptsExternalIps(caller, signal) },
    place: { caller, senders, book, pool, nodeAddresses: addresses },
    translation: { book, pool, nodes, namespace, run, client: senders.pod },
    writer: new ObjectWriter({ api, namespace, book }),
    markers: new Markers({
      caller,
      run,
      clock,
      client: senders.pod,
      endpoint: marker,
      families: ofServices,
      onProgress,
    }),
  };
}

const letters = 'bcdfghjklmnpqrstvwxz0123456789';

function randomName(random: Random): string {
  return Array.from({ length: 6 }, () => letters[Math.floor(random() * letters.length)]).join('');
}
