import {
  buildTable,
  type ClusterEvent,
  ClusterState,
  ConfigError,
  everythingOf,
  type ForwardingTable,
  type Frontend,
  ipFamilies,
  type IpFamily,
  type NodeName,
  nodeName,
  type ServiceForwarding,
  servicePortParts,
  type SourceClass,
  sourceClasses,
} from '@switchyard/core';
import { type ManifestObject, readManifest } from '@switchyard/core/manifests';

/** Text of one input and its name for messages. */
export interface Input {
  readonly name: string;
  /** Output of `kubectl get services,endpointslices,nodes -A -o json` (or `-o yaml`), or a part of it. */
  readonly text: string;
}

/** The node to drain, and the Services whose pods stay there. */
export interface DrainPlan {
  readonly node: string;
  /** `namespace/name` of Services of DaemonSet or static pods, which `kubectl drain --ignore-daemonsets` leaves running. */
  readonly kept: readonly string[];
}

/** Senders that reach a frontend before the drain and not after it. */
export interface Loss {
  /** `namespace/name`. */
  readonly service: string;
  /** Name of the port; empty for an unnamed one. */
  readonly port: string;
  readonly protocol: ServiceForwarding['protocol'];
  readonly ipFamily: IpFamily;
  readonly frontend: Pick<Frontend, 'kind' | 'address' | 'port'>;
  /** `everywhere`: at every node that forwarded before; `node`: only what arrives at, or is sent by, the drained node. */
  readonly where: 'everywhere' | 'node';
  /** In the order of `sourceClasses`; never empty. A proxy that cannot recognise pods takes them for `outside`. */
  readonly from: readonly SourceClass[];
  /** Fate of new connections: an error, or no answer. */
  readonly answer: 'reject' | 'drop';
  /** Port at which the drained node then asks load balancers to stop; undefined if the Service has none, or another port of it serves. */
  readonly healthCheckNodePort: number | undefined;
}

/** Reads all inputs as one cluster. Throws `ConfigError` with every fault and its place. */
export function readCluster(inputs: readonly Input[]): readonly ManifestObject[] {
  const manifests = inputs.map(({ name, text }) => ({ name, ...readManifest(text) }));
  const faults = manifests.flatMap(({ name, faults: all }) =>
    all.map(({ line, column, message }) => `${name}:${line}:${column}: ${message}`),
  );
  const places = new Map<string, string>();
  for (const { name, objects } of manifests) {
    for (const { resource, name: object, line } of objects) {
      const first = places.get(`${resource} ${object}`);
      if (first !== undefined) faults.push(`${name}:${line}:1: ${resource} ${object} is already defined in ${first}`);
      places.set(`${resource} ${object}`, `${name}:${line}`);
    }
  }
  if (faults.length > 0) throw new ConfigError('drain.input', `cannot use the input:\n${faults.join('\n')}`);
  return manifests.flatMap(({ objects }) => objects);
}

/**
 * Returns the frontends that lose all endpoints for some senders, between the present state and the moment when all
 * pods of the node have stopped and no replacement is ready: the worst case of a drain. In key order; empty if no
 * Service loses traffic. Throws `ConfigError` if the plan names an object that is not in the cluster.
 */
export function drainLosses(cluster: readonly ManifestObject[], plan: DrainPlan): readonly Loss[] {
  checkPlan(cluster, plan);
  const drained = nodeName(plan.node);
  const after = cluster.map((object) => withoutEndpoints(object, plan));
  return ipFamilies.flatMap((ipFamily) => {
    const change = (here: NodeName): Change => ({
      before: tableAt(cluster, here, ipFamily),
      after: tableAt(after, here, ipFamily),
    });
    // Nothing is local to a node without a name: it stands for all nodes that have no endpoint of a Service.
    return lossesOf(change(drained), lostKeys(change(nodeName(''))));
  });
}

function checkPlan(cluster: readonly ManifestObject[], { node, kept }: DrainPlan): void {
  const names = Map.groupBy(cluster, ({ resource }) => resource);
  for (const kind of ['Service', 'EndpointSlice', 'Node'] as const) {
    if (names.has(kind)) continue;
    const list = 'kubectl get services,endpointslices,nodes -A -o json';
    throw new ConfigError('drain.incomplete', `the input holds no ${kind}; make it with: ${list}`);
  }
  const missing = (kind: 'Service' | 'Node', name: string): ConfigError | undefined => {
    const there = (names.get(kind) ?? []).map((object) => object.name);
    if (there.includes(name)) return undefined;
    const some = there.slice(0, 10).join(', ') + (there.length > 10 ? ', ...' : '');
    return new ConfigError('drain.unknown', `there is no ${kind} '${name}' in the input; it holds: ${some}`);
  };
  const fault = missing('Node', node) ?? kept.map((name) => missing('Service', name)).find((one) => one !== undefined);
  if (fault !== undefined) throw fault;
}

/** As if the pods of the node had stopped. Endpoints without a node name (other machines, for example) stay. */
function withoutEndpoints(object: ManifestObject, { node, kept }: DrainPlan): ClusterEvent {
  if (object.resource !== 'EndpointSlice' || kept.includes(object.item.service)) return object;
  const endpoints = object.item.endpoints.filter((endpoint) => endpoint.nodeName !== node);
  return { kind: 'upsert', resource: 'EndpointSlice', item: { ...object.item, endpoints } };
}

function tableAt(cluster: readonly ClusterEvent[], here: NodeName, ipFamily: IpFamily): ForwardingTable {
  const state = new ClusterState({ nodeName: here });
  state.apply(cluster);
  return buildTable(state, 'all', undefined, {
    ipFamily,
    nodeName: here,
    masqueradeAll: false,
    terminatingFallback: 'on',
    externalIps: 'forward',
    // Pods are recognised, as where kubeadm or kind set clusterCIDR. How they are does not affect decisions.
    podDetector: { kind: 'interfacePrefix', prefix: 'pod' },
    nodePortCidrs: [everythingOf(ipFamily)],
  });
}

/** One node's table before and after the drain. */
interface Change {
  readonly before: ForwardingTable;
  readonly after: ForwardingTable;
}

/** A frontend and a source class that the table forwards before the drain only. */
interface LostPair {
  readonly service: ServiceForwarding;
  readonly frontend: Frontend;
  readonly source: SourceClass;
  readonly answer: Loss['answer'];
}

function lostPairs({ before, after }: Change): readonly LostPair[] {
  return [...before.services.values()].flatMap((service) =>
    service.frontends.flatMap((frontend) => {
      const next = after.services.get(service.key)?.frontends.find((one) => isSamePlace(one, frontend));
      return sourceClasses.flatMap((source): readonly LostPair[] => {
        const answer = next?.decisions[source].kind ?? 'reject';
        if (frontend.decisions[source].kind !== 'forward' || answer === 'forward') return [];
        return [{ service, frontend, source, answer }];
      });
    }),
  );
}

function isSamePlace(a: Frontend, b: Frontend): boolean {
  return a.kind === b.kind && a.address === b.address && a.port === b.port;
}

function keyOf({ service, frontend, source }: LostPair): string {
  return [service.key, frontend.kind, frontend.address, frontend.port, source].join(' ');
}

function lostKeys(change: Change): ReadonlySet<string> {
  return new Set(lostPairs(change).map(keyOf));
}

/** Senders of one frontend with the same place and fate share an entry. */
function lossesOf(change: Change, lostElsewhere: ReadonlySet<string>): readonly Loss[] {
  const whereOf = (pair: LostPair): Loss['where'] => (lostElsewhere.has(keyOf(pair)) ? 'everywhere' : 'node');
  const groups = Map.groupBy(lostPairs(change), (pair) =>
    [keyOf({ ...pair, source: 'pod' }), whereOf(pair), pair.answer].join(' '),
  );
  return [...groups.values()].flatMap((pairs) => {
    const [first] = pairs;
    if (first === undefined) return [];
    const { service, frontend, answer } = first;
    const { kind, address, port } = frontend;
    const check = kind === 'clusterIP' ? undefined : change.after.healthChecks.get(service.service);
    return [
      {
        service: service.service,
        port: servicePortParts(service.key).portName,
        protocol: service.protocol,
        ipFamily: change.before.ipFamily,
        frontend: { kind, address, port },
        where: whereOf(first),
        from: pairs.map(({ source }) => source),
        answer,
        healthCheckNodePort: check?.localReadyEndpoints === 0 ? check.port : undefined,
      },
    ];
  });
}
