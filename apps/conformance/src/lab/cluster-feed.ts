import { HostError, type IpFamily, millis, systemClock } from '@switchyard/core';
import { type ApiServer, type DirectWrites, directWrites } from '@switchyard/lab';
import { type ClusterObject, clusterObjects, nodeObjects } from '@switchyard/scenarios';
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
