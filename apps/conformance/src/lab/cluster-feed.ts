import { HostError, type IpFamily, millis, systemClock } from '@switchyard/core';
import { type ApiServer, type DirectWrites, directWrites } from '@switchyard/lab';
import { type ClusterObject, clusterObjects, nodeObjects } from '@switchyard/scenarios';
import type { ScenarioMoment } from '../model/bed.ts';

type Key = string;

/** Where no case has a port. */
const [firstHealthPort, healthPorts] = [32_200, 500];

/**
 * What the lab's API server holds of the cases, and how it comes to hold something else: by the difference. First what goes, then
 * Nodes, then Services, then EndpointSlices, so that whoever sees the last slice can see all the rest.
 */
export class ClusterFeed {
  readonly #writes: DirectWrites;
  readonly #families: readonly IpFamily[];
  /** Kept up to date write by write: after a `put` that was cut short the next one still finds all that is there. */
  readonly #held = new Map<Key, { readonly object: ClusterObject; readonly text: string }>();
  #refusals: readonly string[] = [];
  /** Of Services that must have one and were given none. */
  readonly #healthPorts = new Map<Key, number>();

  constructor(server: ApiServer, families: readonly IpFamily[]) {
    this.#writes = directWrites(server);
    this.#families = families;
  }

  /** What the API server said of objects that it holds now though its rules are against them; one line each. */
  get refusals(): readonly string[] {
    return this.#refusals;
  }

  /** Makes the cluster hold exactly these states. */
  async put(moments: readonly ScenarioMoment[], signal: AbortSignal): Promise<void> {
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
      // These two have a watch of their own: whoever sees a Service written after them must have had the time to see them.
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
    this.#refusals = refusals;
  }

  /** The same one for the same Service as long as the lab is there. */
  #healthPort(key: Key): number {
    const port = this.#healthPorts.get(key) ?? firstHealthPort + (this.#healthPorts.size % healthPorts);
    this.#healthPorts.set(key, port);
    return port;
  }

  /** One more object that is no case's. */
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

/** All objects of some states. Nodes are those of the whole cluster: with every family it has, whatever a scenario speaks of. */
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
    throw new HostError('conformance.feed', 'cases that were to be put together name the same objects');
  }
  return [...nodesOf(moments, families), ...objects.map((object) => completed(object, healthPort))];
}

/** The bootstrapped one: the lab has it, with the ranges of the plan. */
function isDefault(metadata: ClusterObject['metadata']): boolean {
  return metadata.name === 'kubernetes';
}

function nodesOf(moments: readonly ScenarioMoment[], families: readonly IpFamily[]): readonly ClusterObject[] {
  const zones = new Set(moments.map(({ scenario }) => scenario.zone));
  if (zones.size > 1) {
    throw new HostError(
      'conformance.feed',
      `cases that were to be put together want node1 in ${[...zones].join(' and ')}`,
    );
  }
  const [zone = 'zone-a'] = zones;
  const changed = moments.flatMap(({ state }) => state.nodeAddress ?? []);
  return nodeObjects(families, zone, changed);
}

/** With what an API server would choose by chance, so that every run is the same. */
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
