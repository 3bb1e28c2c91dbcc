import { compareIps, ipFamilyOf } from '../ip/address.ts';
import type { Port } from '../ip/port.ts';
import type { EndpointRecord, EndpointSliceRecord } from '../records/endpoint-slice.ts';
import type { NodeName } from '../records/keys.ts';
import type { ServicePortRecord } from '../records/service.ts';
import type { Endpoint } from './forwarding-table.ts';
import { finish, sortInSteps, type Steps } from './steps.ts';

/** A port of a slice: its endpoints serve a Service port at this number. */
export interface EndpointSource {
  readonly slice: EndpointSliceRecord;
  readonly port: Port;
}

/** Slice ports by the name and protocol that they share with a Service port, in the order of the slices. */
export class EndpointSources {
  readonly #sources = new Map<string, EndpointSource[]>();

  /** Costs time in proportion to the ports of the slices. */
  constructor(slices: readonly EndpointSliceRecord[]) {
    for (const slice of slices) {
      for (const port of slice.ports) {
        const key = portKey(port);
        const source = { slice, port: port.port };
        const sources = this.#sources.get(key);
        if (sources === undefined) this.#sources.set(key, [source]);
        else sources.push(source);
      }
    }
  }

  /** Where the endpoints of a Service port come from; empty if no slice names the port. */
  of(servicePort: PortIdentity): readonly EndpointSource[] {
    return this.#sources.get(portKey(servicePort)) ?? noSources;
  }
}

const noSources: readonly EndpointSource[] = [];

/** Name and protocol, which a Service port shares with its slice ports. */
type PortIdentity = Pick<ServicePortRecord, 'name' | 'protocol'>;

/** Text that identifies a port within its Service. */
export function portKey({ name, protocol }: PortIdentity): string {
  return `${name}/${protocol}`;
}

/**
 * Every endpoint the slices name for one Service port, sorted by address then port, each pair once.
 *
 * Slice ports are matched by name and protocol, slice by slice: one Service port may lead to different
 * numbers on different endpoints. `slices` are those of the table's family.
 */
export function mergeEndpoints(
  slices: readonly EndpointSliceRecord[],
  servicePort: PortIdentity,
  here: NodeName,
): readonly Endpoint[] {
  return finish(mergeSources(new EndpointSources(slices).of(servicePort), here));
}

/** The same from the sources of one Service port, in steps. */
export function* mergeSources(sources: readonly EndpointSource[], here: NodeName): Steps<readonly Endpoint[]> {
  const endpoints: Endpoint[] = [];
  for (const { slice, port } of sources) {
    for (const record of slice.endpoints) {
      if (isUsableAddress(record, slice)) endpoints.push(endpointOf(record, port, here));
    }
    yield slice.endpoints.length;
  }
  return withoutDuplicates(yield* sortInSteps(endpoints, compareEndpoints));
}

/** Whether an endpoint's address is of its slice's family; the API promises it, a file may not keep it. */
export function isUsableAddress(record: EndpointRecord, slice: EndpointSliceRecord): boolean {
  return ipFamilyOf(record.address) === slice.ipFamily;
}

/** Whether an endpoint on `nodeName` is on this node; nothing is if our own name is empty. */
export function isLocalTo(nodeName: NodeName | undefined, here: NodeName): boolean {
  return here !== '' && nodeName === here;
}

function endpointOf(record: EndpointRecord, port: Port, here: NodeName): Endpoint {
  return {
    address: record.address,
    port,
    isLocal: isLocalTo(record.nodeName, here),
    nodeName: record.nodeName,
    ready: record.ready,
    serving: record.serving,
    terminating: record.terminating,
    zoneHints: record.zoneHints,
    nodeHints: record.nodeHints,
  };
}

function compareEndpoints(a: Endpoint, b: Endpoint): number {
  return compareIps(a.address, b.address) || a.port - b.port || compareDuplicates(a, b);
}

/**
 * Which of two entries for one address and port speaks: endpoints move between slices, and while they
 * do both slices name them. Not terminating beats terminating, as in kube-proxy; where it leaves the
 * choice open, ours depends on the contents alone: ready, serving, local, then the texts.
 */
function compareDuplicates(a: Endpoint, b: Endpoint): number {
  return (
    Number(a.terminating) - Number(b.terminating) ||
    Number(b.ready) - Number(a.ready) ||
    Number(b.serving) - Number(a.serving) ||
    Number(b.isLocal) - Number(a.isLocal) ||
    compareText(a.nodeName ?? '', b.nodeName ?? '') ||
    compareText(a.zoneHints.join(), b.zoneHints.join()) ||
    compareText(a.nodeHints.join(), b.nodeHints.join())
  );
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function withoutDuplicates(sorted: readonly Endpoint[]): readonly Endpoint[] {
  const isRepeat = (endpoint: Endpoint, index: number): boolean => {
    const before = sorted[index - 1];
    return before?.address === endpoint.address && before.port === endpoint.port;
  };
  return sorted.some(isRepeat) ? sorted.filter((endpoint, index) => !isRepeat(endpoint, index)) : sorted;
}
