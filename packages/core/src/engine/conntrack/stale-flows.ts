import { optional, requireFields, requireFunction, requireList, withMethods } from '../../base/argument.ts';
import { checkTable } from '../../model/forwarding/check-input.ts';
import type {
  ForwardingTable,
  Frontend,
  ServiceForwarding,
  TableDelta,
} from '../../model/forwarding/forwarding-table.ts';
import type { IpAddress } from '../../model/ip/address.ts';
import { cidrContains } from '../../model/ip/cidr.ts';
import type { Port } from '../../model/ip/port.ts';
import type { ServicePortKey } from '../../model/records/keys.ts';
import { type Clock, type Millis, seconds } from '../../base/time.ts';

/** One UDP entry of the kernel's connection tracking, of either family. */
export interface UdpFlow {
  readonly source: IpAddress;
  readonly sourcePort: Port;
  /** Destination of the client, before any translation. */
  readonly destination: IpAddress;
  readonly destinationPort: Port;
  /** Source of the answers: the endpoint if the flow was translated, else the destination itself. */
  readonly replySource: IpAddress;
  readonly replySourcePort: Port;
}

/** Input of the decision whether a flow is stale. */
export interface StaleFlowOptions {
  readonly table: ForwardingTable;
  /** Whether an address belongs to this node, loopback excluded. */
  readonly isLocalAddress: (address: IpAddress) => boolean;
  /** Services whose flows are kept, because the kernel differs from the table. */
  readonly except?: Pick<ReadonlySet<ServicePortKey>, 'has'> | undefined;
  /** Recent endpoints of removed frontends. Default: none. */
  readonly former?: readonly FormerEndpoints[];
}

/** Decides which flows are stale. */
export interface FlowJudge {
  /** Ports of flows that can be stale; a cheap first filter. Empty: no flow can be stale. */
  readonly destinationPorts: ReadonlySet<Port>;
  readonly isStale: (flow: UdpFlow) => boolean;
}

/**
 * Returns a judge of the flows to delete: those to a UDP frontend of the table that do not lead to an endpoint that still
 * serves, and those to a removed frontend that lead to an endpoint it had. UDP has no handshake: a client that keeps
 * sending from one port would otherwise send to a dead address indefinitely.
 *
 * - A flow to any serving endpoint of the service stays, even if policy or topology now prefer others.
 * - A service without a serving endpoint loses all its flows.
 * - A flow without translation counts too: it began before the service had an endpoint.
 * - A NodePort is compared only for destinations on which this node answers NodePorts. Other flows with the same port number
 *   only pass through. A removed NodePort is compared on every address of this node, because the selection of addresses may
 *   have changed with it.
 * - Ignores TCP, SCTP and flows to other destinations.
 *
 * Throws `UsageError` for options of other types.
 */
export function flowJudge(options: StaleFlowOptions): FlowJudge {
  requireFields('flowJudge: options', options, {
    table: checkTable,
    isLocalAddress: requireFunction,
    except: optional(withMethods('has')),
    former: optional(requireList),
  });
  const { table, isLocalAddress, except, former = [] } = options;
  const places: Places<ServiceForwarding> = new Map();
  for (const service of table.services.values()) {
    if (service.protocol !== 'UDP' || except?.has(service.key) === true) continue;
    for (const { address, port } of service.frontends) portOf(places, port).set(address, service);
  }
  const formerPlaces: Places<ReadonlySet<string>> = new Map();
  for (const { address, port, endpoints } of former) {
    const ofPort = portOf(formerPlaces, port);
    // Two Services may have used the same address and port in succession.
    ofPort.set(address, ofPort.get(address)?.union(endpoints) ?? endpoints);
  }
  const isNodePortAddress = (address: IpAddress): boolean =>
    isLocalAddress(address) && table.nodePortCidrs.some((cidr) => cidrContains(cidr, address));
  const servingByService = new Map<ServiceForwarding, ReadonlySet<string>>();
  return {
    destinationPorts: new Set([...places.keys(), ...formerPlaces.keys()]),
    isStale: (flow) => {
      const answeredBy = placeOf(flow.replySource, flow.replySourcePort);
      const service = find(places, flow, isNodePortAddress);
      if (service === undefined) return find(formerPlaces, flow, isLocalAddress)?.has(answeredBy) === true;
      const serving = servingByService.get(service) ?? servingPlaces(service);
      servingByService.set(service, serving);
      return !serving.has(answeredBy);
    },
  };
}

type Places<T> = Map<Port, Map<Frontend['address'], T>>;

function portOf<T>(places: Places<T>, port: Port): Map<Frontend['address'], T> {
  const ofPort = places.get(port) ?? new Map<Frontend['address'], T>();
  places.set(port, ofPort);
  return ofPort;
}

/** Returns the entry of the flow's destination: by address, else by NodePort if `isNodePort` accepts the address. */
function find<T>(
  places: Places<T>,
  { destination, destinationPort }: UdpFlow,
  isNodePort: (address: IpAddress) => boolean,
): T | undefined {
  const ofPort = places.get(destinationPort);
  const exact = ofPort?.get(destination);
  if (exact !== undefined) return exact;
  const any = ofPort?.get('anyNodePortAddress');
  return any !== undefined && isNodePort(destination) ? any : undefined;
}

/**
 * Whether stale flows may exist after `after` replaces `before` (undefined: unknown). A new endpoint, or one that begins
 * to terminate and still serves, leaves none. `formerEndpoints` finds removed frontends.
 */
export function canLeaveStaleFlows(before: ServiceForwarding | undefined, after: ServiceForwarding): boolean {
  if (after.protocol !== 'UDP') return false;
  if (before === undefined || before.protocol !== 'UDP') return true;
  const places = new Set(before.frontends.map(({ address, port }) => placeOf(address, port)));
  if (after.frontends.some(({ address, port }) => !places.has(placeOf(address, port)))) return true;
  const serving = servingPlaces(before);
  return serving.size === 0 || !serving.isSubsetOf(servingPlaces(after));
}

/** Endpoints to which the kernel recently translated flows of one UDP frontend. */
export interface FormerEndpoints {
  readonly service: ServicePortKey;
  readonly address: Frontend['address'];
  readonly port: Port;
  /** Each as `address port`. */
  readonly endpoints: ReadonlySet<string>;
}

interface Remembered {
  readonly former: FormerEndpoints;
  readonly since: Millis;
}

/** Time within which a datagram that was translated during the apply enters connection tracking. */
const settleTime: Millis = seconds(1);
/** Limit; the oldest are removed first, and their flows end by timeout (30 to 120 s without a datagram). */
const maxRemembered = 10_000;

/**
 * Remembers the endpoints of recently removed UDP frontends (deleted Service, removed port or address;
 * kubernetes/kubernetes#141371), and endpoints that a frontend has just lost, because the frontend may be removed next. No
 * table names them, and their flows would last as long as the client sends. Each is remembered until a search for stale
 * flows succeeds that began at least one second after the change in the kernel.
 */
export class RecentEndpoints {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Endpoints whose rules the kernel still has. */
  #held: readonly FormerEndpoints[] = [];
  #all: readonly Remembered[] = [];
  #current: readonly FormerEndpoints[] = [];

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Remembered endpoints; a new array after each change. */
  get current(): readonly FormerEndpoints[] {
    return this.#current;
  }

  /**
   * Notes the end of an apply that removed `former` from the kernel, except those of `failed` services. Those are held back
   * until an apply succeeds. `isNew`: more endpoints to search for; `forgotten`: number of endpoints beyond the limit.
   */
  noteApplied(
    former: readonly FormerEndpoints[],
    failed: Pick<ReadonlySet<ServicePortKey>, 'has'>,
  ): { readonly isNew: boolean; readonly forgotten: number } {
    if (former.length === 0 && this.#held.length === 0) return { isNew: false, forgotten: 0 };
    const since = this.#clock.monotonic();
    const { held = [], out = [] } = Object.groupBy([...this.#held, ...former], ({ service }) =>
      failed.has(service) ? 'held' : 'out',
    );
    const all = [...this.#all, ...out.map((former) => ({ former, since }))];
    this.#held = held.slice(-maxRemembered);
    this.#set(all.slice(-maxRemembered));
    const forgotten = held.length - this.#held.length + all.length - this.#all.length;
    return { isNew: out.length > 0, forgotten };
  }

  /** Notes the success of a search for flows to the current endpoints, which began at `start`. */
  noteLook(start: Millis): void {
    if (this.#all.length > 0) this.#set(this.#all.filter(({ since }) => start - since < settleTime));
  }

  #set(all: readonly Remembered[]): void {
    this.#all = all;
    this.#current = all.map(({ former }) => former);
  }
}

/**
 * Returns the endpoints that UDP frontends lose between `applied` and `table`, for services in the delta between the two.
 * Removed frontends lose all their endpoints, others those that no longer serve.
 */
export function formerEndpoints(
  applied: ForwardingTable,
  table: ForwardingTable,
  { upserted, removed }: TableDelta,
): readonly FormerEndpoints[] {
  const keys = [...removed, ...upserted.map(({ key }) => key)];
  return keys.flatMap((key) => {
    const before = applied.services.get(key);
    return before?.protocol === 'UDP' ? lostBy(before, table.services.get(key)) : [];
  });
}

function lostBy(before: ServiceForwarding, after: ServiceForwarding | undefined): readonly FormerEndpoints[] {
  const all = new Set(before.knownEndpoints.map(({ address, port }) => placeOf(address, port)));
  const noLonger = after === undefined ? all : servingPlaces(before).difference(servingPlaces(after));
  const kept = new Set(after?.frontends.map(({ address, port }) => placeOf(address, port)));
  return before.frontends.flatMap(({ address, port }) => {
    const endpoints = kept.has(placeOf(address, port)) ? noLonger : all;
    return endpoints.size === 0 ? [] : [{ service: before.key, address, port, endpoints }];
  });
}

function placeOf(address: Frontend['address'], port: Port): string {
  return `${address} ${port}`;
}

/** Returns endpoints that still serve, terminating or not, in the format of `placeOf`. */
function servingPlaces({ knownEndpoints }: ServiceForwarding): ReadonlySet<string> {
  return new Set(knownEndpoints.flatMap(({ serving, address, port }) => (serving ? [placeOf(address, port)] : [])));
}
