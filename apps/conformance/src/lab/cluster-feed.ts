import { HostError, type IpFamily, millis, systemClock, type IpAddress, parseIp } from '@switchyard/core';
import { type ApiServer, type DirectWrites, directWrites, freshPort } from '@switchyard/lab';
import { type ClusterObject, clusterObjects, nodeObjects } from '@switchyard/scenarios';
import type { LabHosts } from './lab-hosts.ts';
import type { ScenarioMoment } from '../model/test-environment.ts';

type Key = string;

/** A range of ports that no case uses. */
const [firstHealthPort, healthPorts] = [32_200, 500];

/**
 * Objects of the cases in the lab's API server. Changes are written as differences: first removals, then Nodes, then Services, then
 * EndpointSlices, so that a client that sees the last slice can see all the rest.
 */
export class ClusterFeed {
  readonly #writes: DirectWrites;
  readonly #families: readonly IpFamily[];
  /** Kept up to date write by write: after a `put` that was cut short the next one still finds all that is there. */
  readonly #held = new Map<Key, { readonly object: ClusterObject; readonly text: string }>();
  /** Health check ports of Services that need one and name none. */
  readonly #healthPorts = new Map<Key, number>();

  constructor(server: ApiServer, families: readonly IpFamily[]) {
    this.#writes = directWrites(server);
    this.#families = families;
  }

  /**
   * Makes the cluster hold exactly these states. Resolves with the validation errors of objects that were stored past the API server's
   * rules, one line each.
   */
  async put(moments: readonly ScenarioMoment[], signal: AbortSignal): Promise<readonly string[]> {
    const wanted = new Map(
      objectsOf(moments, { families: this.#families, healthPort: (key) => this.#healthPort(key) }).map((object) => [
        keyOf(object),
        { object, text: JSON.stringify(object) },
      ]),
    );
    let hasNodeChange = false;
    for (const [key, { object }] of this.#held) {
      if (wanted.has(key) || object.kind === 'Node') continue;
      this.#writes.remove({ ...nameOf(object), kind: object.kind });
      this.#held.delete(key);
      hasNodeChange ||= object.kind === 'ServiceCIDR';
    }
    const refusals: string[] = [];
    for (const kind of ['Node', 'ServiceCIDR', 'Service', 'EndpointSlice'] as const) {
      const changed = [...wanted].filter(
        ([key, { object, text }]) => object.kind === kind && this.#held.get(key)?.text !== text,
      );
      // Nodes and ServiceCIDRs have watches of their own: give the proxy time to see them before the Services.
      if (kind === 'Service' && hasNodeChange) await systemClock.sleep(millis(30), signal);
      for (const [key, one] of changed) {
        const { object } = one;
        this.#held.set(key, { object, text: '' }); // half-written, until it is done
        const refusal = this.#writes.put(object);
        this.#held.set(key, one);
        if (refusal !== undefined) refusals.push(`${object.kind} ${object.metadata.name}: ${refusal}`);
      }
      hasNodeChange ||= kind !== 'EndpointSlice' && kind !== 'Service' && changed.length > 0;
    }
    return refusals;
  }

  /** Port of a Service, which stays the same while the lab exists. */
  #healthPort(key: Key): number {
    const port = this.#healthPorts.get(key) ?? firstHealthPort + (this.#healthPorts.size % healthPorts);
    this.#healthPorts.set(key, port);
    return port;
  }

  /** Writes an object of the runner itself. Throws `HostError` if the API server refuses it. */
  putOwn(object: ClusterObject): void {
    const refusal = this.#writes.put(object);
    if (refusal !== undefined) {
      throw new HostError(
        'conformance.feed',
        `the API server refused ${object.kind} ${object.metadata.name}: ${refusal}`,
      );
    }
  }
}

/** All objects of some states. Nodes have every family of the cluster, independent of the scenarios. */
function objectsOf(
  moments: readonly ScenarioMoment[],
  { families, healthPort }: { readonly families: readonly IpFamily[]; readonly healthPort: (key: Key) => number },
): readonly ClusterObject[] {
  const all = moments.flatMap(({ scenario, state }) => clusterObjects(scenario, state));
  const objects = all.filter(
    ({ kind, metadata }) => kind !== 'Node' && !(kind === 'ServiceCIDR' && isDefault(metadata)),
  );
  const keys = new Set(objects.map(keyOf));
  if (keys.size < objects.length) {
    throw new HostError('conformance.feed', 'cases of one batch name the same objects');
  }
  return [...nodesOf(moments, families), ...objects.map((object) => completed(object, healthPort))];
}

/** The bootstrapped ServiceCIDR, which the lab has with the ranges of the plan. */
function isDefault(metadata: ClusterObject['metadata']): boolean {
  return metadata.name === 'kubernetes';
}

function nodesOf(moments: readonly ScenarioMoment[], families: readonly IpFamily[]): readonly ClusterObject[] {
  const zones = new Set(moments.map(({ scenario }) => scenario.zone));
  if (zones.size > 1) {
    throw new HostError('conformance.feed', `cases of one batch want node1 in ${[...zones].join(' and ')}`);
  }
  const [zone = 'zone-a'] = zones;
  const changed = moments.flatMap(({ state }) => state.nodeAddress ?? []);
  return nodeObjects(families, zone, changed);
}

/** Adds values that an API server would choose at random, so that every run is the same. */
function completed(object: ClusterObject, healthPort: (key: Key) => number): ClusterObject {
  if (object.kind !== 'Service') return object;
  const { spec = {} } = object;
  if (spec.type === 'ExternalName') {
    const { clusterIP: _ip, clusterIPs: _ips, ipFamilies: _families, internalTrafficPolicy: _policy, ...rest } = spec;
    return { ...object, spec: { ...rest, externalName: 'elsewhere.example' } };
  }
  if (spec.type !== 'LoadBalancer') return object;
  const hasNodePort = spec.ports?.some((port) => port.nodePort !== undefined) === true;
  const needsHealth = spec.externalTrafficPolicy === 'Local' && spec.healthCheckNodePort === undefined;
  return {
    ...object,
    spec: {
      ...spec,
      ...(hasNodePort ? {} : { allocateLoadBalancerNodePorts: false }),
      ...(needsHealth ? { healthCheckNodePort: healthPort(keyOf(object)) } : {}),
    },
  };
}

function nameOf({ metadata }: ClusterObject): { readonly namespace: string; readonly name: string } {
  return { namespace: metadata.namespace ?? '', name: metadata.name };
}

function keyOf({ kind, metadata }: ClusterObject): Key {
  return `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
}

const addresses: Readonly<Record<IpFamily, IpAddress>> = {
  IPv4: parseIp('10.96.254.254'),
  IPv6: parseIp('fd00:10:96::fefe'),
};
/** Port of the echo server behind the marker; no case uses it. */
export const markerPort = 9100;
const [firstPort, lastPort] = [10_000, 60_000];

interface MarkerPlace {
  readonly hosts: LabHosts;
  readonly feed: ClusterFeed;
  readonly families: readonly IpFamily[];
  /** Pod addresses of the echo server behind the marker. */
  readonly endpoint: Readonly<Partial<Record<IpFamily, IpAddress>>>;
}

/**
 * A Service of the runner whose answers show that the proxy has applied everything written before. Each time it gets another port and
 * port name, in the Service and in its slices. It only answers there once the proxy has seen both, and so, as each watch is in order,
 * everything written to Services and slices before.
 */
export interface Marker {
  /** Writes the next one. */
  write(): void;
  /** Resolves when the last marker answers in every family. Rejects with `signal.reason`, or if the prober has ended; has no timeout. */
  answered(signal: AbortSignal): Promise<void>;
}

/** A marker with no port yet. */
export function createMarker({ hosts, feed, families, endpoint }: MarkerPlace): Marker {
  let count = 0;
  const port = (): number => firstPort + (count % (lastPort - firstPort));
  return {
    write: () => {
      count += 1;
      for (const object of markerObjects(`p-${count}`, port(), families, endpoint)) feed.putOwn(object);
    },
    answered: async (signal) => {
      await Promise.all(families.map((family) => answers(hosts, addresses[family], port(), signal)));
    },
  };
}

/** Attempts overlap, each from its own port: a dropped attempt takes a second and a half, and must not delay the next one. */
async function answers(hosts: LabHosts, address: IpAddress, port: number, signal: AbortSignal): Promise<void> {
  const prober = await hosts.proberIn(hosts.clientPod, signal);
  const answer = new AbortController();
  const either = AbortSignal.any([signal, answer.signal]);
  let broken: unknown;
  const attempt = async (): Promise<void> => {
    const sourcePort = freshPort(hosts.clientPod);
    const result = await prober.probe({ protocol: 'tcp', address, port, sourcePort });
    if (result.status === 'answered') answer.abort();
  };
  for (let pause = 6; !answer.signal.aborted; pause = Math.min(pause * 1.3, 50)) {
    signal.throwIfAborted();
    attempt().catch((error: unknown) => {
      broken = error; // the prober has ended, which says nothing about the proxy
      answer.abort();
    });
    await systemClock.sleep(millis(pause), either).catch(() => undefined);
  }
  signal.throwIfAborted();
  if (broken !== undefined) throw broken;
}

function markerObjects(
  portName: string,
  port: number,
  families: readonly IpFamily[],
  endpoint: MarkerPlace['endpoint'],
): readonly ClusterObject[] {
  const name = 'marker';
  const namespace = 'switchyard-conformance';
  const clusterIPs = families.map((family) => addresses[family]);
  const ports = [{ name: portName, port, protocol: 'TCP', targetPort: markerPort }];
  const service: ClusterObject = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name },
    spec: { type: 'ClusterIP', clusterIP: clusterIPs[0] ?? '', clusterIPs, ipFamilies: families, ports },
  };
  const slices = families.map((family): ClusterObject => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace, name: `${name}-${family.toLowerCase()}`, labels: { 'kubernetes.io/service-name': name } },
    addressType: family,
    ports: [{ name: portName, protocol: 'TCP', port: markerPort }],
    endpoints: [{ addresses: [endpoint[family] ?? ''], conditions: { ready: true }, nodeName: 'node2' }],
  }));
  return [service, ...slices];
}
