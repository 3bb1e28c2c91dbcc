import {
  addressAndPort,
  cidrContains,
  explain,
  type Flow,
  type ForwardingTable,
  type Frontend,
  type IpAddress,
  ipFamilyOf,
  parseIp,
  type ServiceForwarding,
  type ServicePortKey,
  type SourceClass,
  sourceClasses,
} from '@switchyard/core';
import type { ServiceCounters } from '@switchyard/core/engine';
import { type CauseCode, causes } from './causes/causes.ts';
import type { Loss } from './causes/explain-drop.ts';
import { refusalCause } from './causes/refusal-cause.ts';
import type { ServiceView } from './loss-reader.ts';

/** Reads the dataplane's counters of a node's Services; one of each IP family's maps. */
export type ReadCounters = (signal: AbortSignal) => Promise<readonly ReadonlyMap<ServicePortKey, ServiceCounters>[]>;

const counted: Readonly<Record<keyof ServiceCounters['drops'], CauseCode>> = {
  noLocalEndpoint: 'noLocalEndpoint',
  noEndpoints: 'noEndpoints',
  sourceRange: 'sourceNotAllowed',
};

/**
 * Refusals by the dataplane's own counters. They include refusals without a packet: of sockets in the ebpf mode, and of all where
 * packets cannot be watched.
 */
export class RefusalCounts {
  readonly #read: ReadCounters;
  /** Counts at the last reading, by Service and cause. */
  #before: ReadonlyMap<string, number> | undefined;
  /** Reported packets that the counters did not have yet. */
  readonly #reported = new Map<string, number>();

  constructor(read: ReadCounters) {
    this.#read = read;
  }

  /** New refusals by Service and cause. The first reading has none. */
  async read(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const now = new Map<string, number>();
    for (const [index, counters] of (await this.#read(signal)).entries()) {
      for (const [key, { drops }] of counters) {
        for (const [name, cause] of Object.entries(counted)) {
          const count = drops[name as keyof typeof drops]; // a key of `counted`
          if (count > 0) now.set(`${index} ${cause} ${key}`, count);
        }
      }
    }
    const before = this.#before;
    this.#before = now;
    const fresh = new Map<string, number>();
    if (before === undefined) return fresh;
    for (const [name, count] of now) {
      const earlier = before.get(name) ?? 0;
      const more = count < earlier ? count : count - earlier; // a new counter begins at 0
      const [, cause, key] = name.split(' ');
      const place = `${cause} ${key}`;
      if (more > 0) fresh.set(place, (fresh.get(place) ?? 0) + more);
    }
    return fresh;
  }

  /** Losses of those refusals that are not among `losses`. Read the counters before the packets, or some seem to be missing. */
  missing(fresh: ReadonlyMap<string, number>, losses: readonly Loss[], view: ServiceView): readonly Loss[] {
    for (const { cause, service, count } of losses) {
      const place = `${cause} ${service}`;
      if (Object.values(counted).includes(cause)) this.#reported.set(place, (this.#reported.get(place) ?? 0) + count);
    }
    return [...fresh].flatMap(([place, count]) => {
      const reported = this.#reported.get(place) ?? 0;
      this.#reported.set(place, Math.max(0, reported - count));
      const [cause, key] = place.split(' ') as [CauseCode, ServicePortKey]; // as `read` made it
      return count > reported ? [refusal({ cause, key, count: count - reported, view })] : [];
    });
  }
}

interface Refusal {
  readonly cause: CauseCode;
  readonly key: ServicePortKey;
  readonly count: number;
  readonly view: ServiceView;
}

function refusal({ cause, key, count, view }: Refusal): Loss {
  const isBySocket = view.traits.translation === 'sockets';
  return {
    cause,
    ...frontendAndText(cause, key, view),
    advice: causes[cause],
    certainty: 'sure',
    service: key,
    services: [key],
    client: undefined,
    direction: 'request',
    where: { netns: isBySocket ? 'socket' : 'node', hook: undefined },
    reason: 'counter of the Service',
    count,
  };
}

/** The first frontend that refuses for this cause, and why it does. */
function frontendAndText(cause: CauseCode, key: ServicePortKey, view: ServiceView): Pick<Loss, 'frontend' | 'why'> {
  for (const table of view.tables.values()) {
    const service = table.services.get(key);
    if (service === undefined) continue;
    const own = { ...table, services: new Map([[key, service]]) };
    for (const frontend of service.frontends) {
      const destination = frontend.address === 'anyNodePortAddress' ? nodeAddress(view, table) : frontend.address;
      if (destination === undefined) continue;
      for (const from of sourceClasses) {
        const explanation = explain(own, flowTo(frontend, { destination, from, service, view }), view.traits);
        const found = refusalCause(explanation);
        const isRefused = explanation.verdict.kind === 'reject' || explanation.verdict.kind === 'drop';
        if (!isRefused || found.cause !== cause) continue;
        return { frontend: `${addressAndPort(destination, frontend.port)}/${service.protocol}`, why: found.why };
      }
    }
  }
  return { frontend: key, why: `the Service refused it (${cause}); it no longer does` };
}

interface FlowParts {
  readonly destination: IpAddress;
  readonly from: SourceClass;
  readonly service: ServiceForwarding;
  readonly view: ServiceView;
}

/** A flow from an address in no source range. */
function flowTo({ port, allowedSources }: Frontend, { destination, from, service, view }: FlowParts): Flow {
  return {
    from,
    source: outsideOf(allowedSources, destination),
    destination,
    destinationPort: port,
    protocol: service.protocol,
    destinationIsLocal: view.nodeAddresses.includes(destination),
  };
}

/** Documentation addresses (RFC 5737, RFC 3849) and the frontend's own: the first in no range. */
function outsideOf(ranges: Frontend['allowedSources'], destination: IpAddress): IpAddress {
  const ofFamily =
    ipFamilyOf(destination) === 'IPv4' ? ['192.0.2.1', '198.51.100.1'] : ['2001:db8::1', '2001:db8:ffff::1'];
  const candidates = [...ofFamily.map(parseIp), destination];
  const isInside = (address: IpAddress): boolean =>
    ranges !== 'any' && ranges.some((range) => cidrContains(range, address));
  return candidates.find((address) => !isInside(address)) ?? destination;
}

function nodeAddress(view: ServiceView, { ipFamily }: ForwardingTable): IpAddress | undefined {
  return view.nodeAddresses.find((address) => ipFamilyOf(address) === ipFamily);
}
