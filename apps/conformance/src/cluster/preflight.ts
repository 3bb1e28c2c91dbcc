import { ConfigError, ipFamilyOf, tryParseIp, HostError, millis, seconds, ApiServerError } from '@switchyard/core';
import type { IpAddress, IpFamily, Clock } from '@switchyard/core';
import { apiResources, type Namespace, type ObjectClient, type Service, type Node } from '@switchyard/core/kubernetes';
import { type DataplaneName, dataplaneNames } from '@switchyard/scenarios';
import type { ClusterEnvironmentOptions } from './open-cluster-environment.ts';
import type { TrafficPod } from './start-pods.ts';
import { type Caller, callPod } from './traffic-caller.ts';

/** Label of every object that a run makes; its value is the run's name. */
export const runLabel = 'switchyard.dev/conformance-run';

/** Number of names in a message; further ones are only counted. */
const mostNames = 10;

/** Checks whether the cluster can be used; `otherRuns`: namespaces of other runs, or of such that did not clean up. Rejects with `ConfigError` that says why not and what to do. */
export async function preflight(
  api: ObjectClient,
  options: Pick<ClusterEnvironmentOptions, 'nodes' | 'mayHaveOtherLoadBalancers'>,
  signal: AbortSignal,
): Promise<{ readonly nodes: NodePair; readonly otherRuns: readonly string[] }> {
  const [nodes, services, namespaces] = await Promise.all([
    api.list(apiResources.nodes, {}, signal),
    api.list(apiResources.services, {}, signal),
    runNamespaces(api, signal),
  ]);
  const otherRuns = namespaces.map(({ metadata }) => metadata.name ?? '');
  if (options.mayHaveOtherLoadBalancers !== true) refuseOtherLoadBalancers(services.items, otherRuns);
  return { nodes: chooseNodes(nodes.items, options.nodes), otherRuns };
}

/** Namespaces that runs have made. */
async function runNamespaces(api: ObjectClient, signal: AbortSignal): Promise<readonly Namespace[]> {
  return (await api.list(apiResources.namespaces, { labelSelector: runLabel }, signal)).items;
}

/** Throws `ConfigError` if the cluster has Services of type LoadBalancer that are not of conformance runs. */
export function refuseOtherLoadBalancers(services: readonly Service[], ours: readonly string[]): void {
  const others = services
    .filter(({ metadata, spec }) => spec?.type === 'LoadBalancer' && !ours.includes(metadata.namespace ?? ''))
    .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  if (others.length === 0) return;
  const more = others.length > mostNames ? ` and ${others.length - mostNames} more` : '';
  throw new ConfigError(
    'cluster.loadBalancers',
    `this cluster has Services of type LoadBalancer that may be in use: ${others.slice(0, mostNames).join(', ')}${more}; ` +
      'run on a cluster without them, or say --allow-other-load-balancers (they are not touched)',
  );
}

/** A node of the cluster that stands for one of a scenario's. */
export interface RealNode {
  readonly name: string;
  /** The node's first InternalIP of each family. */
  readonly addresses: Readonly<Partial<Record<IpFamily, IpAddress>>>;
  /** Value of the label `topology.kubernetes.io/zone`; undefined: it has none. */
  readonly zone: string | undefined;
  readonly kernel: string;
}

/** The two nodes of every scenario: the one under test, and the other one. */
export interface NodePair {
  readonly node1: RealNode;
  readonly node2: RealNode;
}

/** Reason why a node cannot run pods; undefined: it can. */
export function nodeObstacle({ metadata, spec, status }: Node): string | undefined {
  const os = metadata?.labels?.['kubernetes.io/os'] ?? status?.nodeInfo?.operatingSystem ?? 'linux';
  if (os !== 'linux') return `runs ${os}`;
  if (spec?.unschedulable === true) return 'is cordoned';
  if (!(status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True')) {
    return 'is not Ready';
  }
  const taint = (spec?.taints ?? []).find(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute');
  if (taint !== undefined) return `has the taint ${taint.key}`;
  return Object.keys(addressesOf(status)).length === 0 ? 'has no InternalIP' : undefined;
}

/** The two nodes to use: the named ones, or the first two usable ones by name. Throws `ConfigError` that names the reason against each node. */
export function chooseNodes(nodes: readonly Node[], wanted?: readonly [string, string]): NodePair {
  const sorted = nodes.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b), 'en', { numeric: true }));
  const usable = sorted.filter((node) => nodeObstacle(node) === undefined);
  if (wanted !== undefined) {
    const [node1, node2] = wanted.map((name) => named(sorted, name)) as [Node, Node];
    if (node1 === node2) throw new ConfigError('cluster.nodes', `--nodes names ${wanted[0]} twice; two are needed`);
    return { node1: realNode(node1), node2: realNode(node2) };
  }
  const [node1, node2] = usable;
  if (node1 !== undefined && node2 !== undefined) return { node1: realNode(node1), node2: realNode(node2) };
  const others = sorted.flatMap((node) => {
    const why = nodeObstacle(node);
    return why === undefined ? [] : [`${nameOf(node)} ${why}`];
  });
  const against = others.length === 0 ? '' : `: ${others.join(', ')}`;
  throw new ConfigError(
    'cluster.nodes',
    `two Linux nodes are needed that are Ready and take pods, one under test and one outside; of ${nodes.length} there ` +
      `can be used ${usable.map(nameOf).join(', ') || 'none'}${against}`,
  );
}

function named(nodes: readonly Node[], name: string): Node {
  const node = nodes.find((one) => nameOf(one) === name);
  if (node === undefined) {
    throw new ConfigError('cluster.nodes', `there is no node ${name}; there are ${nodes.map(nameOf).join(', ')}`);
  }
  const obstacle = nodeObstacle(node);
  if (obstacle === undefined) return node;
  throw new ConfigError('cluster.nodes', `node ${name} cannot be used: it ${obstacle}`);
}

function realNode(node: Node): RealNode {
  return {
    name: nameOf(node),
    addresses: addressesOf(node.status),
    zone: node.metadata?.labels?.['topology.kubernetes.io/zone'],
    kernel: node.status?.nodeInfo?.kernelVersion ?? 'unknown',
  };
}

function addressesOf(status: Node['status']): RealNode['addresses'] {
  return firstOfEachFamily(
    (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map((one) => one.address),
  );
}

/** The first address of each family; other text is left out. */
export function firstOfEachFamily(texts: readonly (string | undefined)[]): RealNode['addresses'] {
  const addresses: Partial<Record<IpFamily, IpAddress>> = {};
  for (const text of texts) {
    const ip = tryParseIp(text ?? '');
    if (ip !== undefined) addresses[ipFamilyOf(ip)] ??= ip;
  }
  return addresses;
}

function nameOf({ metadata }: Node): string {
  return metadata?.name ?? '';
}

interface RemovalOptions {
  readonly api: ObjectClient;
  readonly clock: Clock;
  readonly onProgress: (text: string) => void;
}

const lookPause = millis(250);
const longestRemoval = seconds(180);
const quietTime = 5_000;

/** Makes the namespace of a run. Pods on the host's network need the level `privileged` of Pod Security, and nothing else of it. */
export async function createRunNamespace(api: ObjectClient, run: string, signal: AbortSignal): Promise<string> {
  const name = `switchyard-conformance-${run}`;
  const labels = {
    [runLabel]: run,
    'pod-security.kubernetes.io/enforce': 'privileged',
    'pod-security.kubernetes.io/warn': 'privileged',
    'pod-security.kubernetes.io/audit': 'privileged',
  };
  await api.create(apiResources.namespaces, { metadata: { name, labels } }, signal);
  return name;
}

/** Removes a namespace with everything in it and waits until it is gone. Rejects with `HostError` that names what blocks the removal. */
export async function removeNamespace(name: string, options: RemovalOptions, signal: AbortSignal): Promise<void> {
  const { api, clock, onProgress } = options;
  await api.delete(apiResources.namespaces, { name }, {}, signal);
  const start = clock.monotonic();
  for (let told = ''; ; await clock.sleep(lookPause, signal)) {
    const namespace = await api.find(apiResources.namespaces, { name }, signal);
    if (namespace === undefined) return;
    const waited = clock.monotonic() - start;
    const what = whatRemains(namespace);
    if (waited > longestRemoval) {
      throw new HostError('cluster.cleanup', `namespace ${name} is not gone after ${longestRemoval / 1000} s: ${what}`);
    }
    if (waited > quietTime && told !== what) onProgress(`waiting until namespace ${name} is gone: ${what}`);
    if (waited > quietTime) told = what;
  }
}

/** Removes the namespaces of all runs, including runs in progress, and returns their names. */
export async function removeAllRuns(options: RemovalOptions, signal: AbortSignal): Promise<readonly string[]> {
  const names = (await runNamespaces(options.api, signal)).map(({ metadata }) => metadata.name ?? '');
  await Promise.all(names.map((name) => removeNamespace(name, options, signal)));
  return names;
}

function whatRemains({ status }: Namespace): string {
  const remaining = (status?.conditions ?? []).filter(({ status: value }) => value === 'True');
  return remaining.map(({ message }) => message ?? '').join('; ') || 'its pods are ending';
}

/** Families that Services of this cluster can have: those that the API server gives to a Service that prefers both. */
export async function serviceFamilies(
  { api, namespace }: Caller,
  families: readonly IpFamily[],
  signal: AbortSignal,
): Promise<readonly IpFamily[]> {
  const service = {
    metadata: { name: 'families', namespace },
    spec: { ipFamilyPolicy: 'PreferDualStack', ports: [{ port: 80 }] },
  };
  const { spec } = await api.tryCreate(apiResources.services, service, signal);
  return families.filter((family) => spec?.ipFamilies?.includes(family) === true);
}

/** Whether Services may have external IPs: admission plug-ins such as `DenyServiceExternalIPs` refuse them. */
export async function acceptsExternalIps({ api, namespace }: Caller, signal: AbortSignal): Promise<boolean> {
  const service = {
    metadata: { name: 'external', namespace },
    spec: { externalIPs: ['203.0.113.1'], ports: [{ port: 80 }] },
  };
  try {
    await api.tryCreate(apiResources.services, service, signal);
    return true;
  } catch (error) {
    if (error instanceof ApiServerError && error.status !== undefined) return false;
    throw error;
  }
}

/** Port at which kube-proxy and its replacements report their mode. */
const metricsPort = 10_249;

/** Mode that the proxy on the node under test reports. Rejects with `ConfigError` if it reports none, or an unknown one. */
export async function askProxyMode(caller: Caller, node: TrafficPod, signal: AbortSignal): Promise<DataplaneName> {
  const probes = ['127.0.0.1', '::1'].map(
    (address) => ({ protocol: 'http', address, port: metricsPort, path: '/proxyMode' }) as const,
  );
  const { results } = await callPod(caller, node, { name: 'probe', argument: { probes } }, signal);
  const answer = results.find((result) => result.status === 'answered' && result.httpStatus === 200);
  const said = answer?.status === 'answered' ? answer.body.trim() : undefined;
  const mode = dataplaneNames.find((one) => one === said);
  if (mode !== undefined) return mode;
  throw new ConfigError(
    'cluster.mode',
    `the proxy of node ${node.node} ${said === undefined ? `does not say its mode at 127.0.0.1:${metricsPort}/proxyMode` : `says its mode is ${said}`}; ` +
      `give the expected dataplane by --mode ${dataplaneNames.join('|')}`,
  );
}
