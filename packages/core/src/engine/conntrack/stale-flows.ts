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
  /** Where the client sent to, before any translation. */
  readonly destination: IpAddress;
  readonly destinationPort: Port;
  /** Who answers: the endpoint if the flow was translated, else the destination itself. */
  readonly replySource: IpAddress;
  readonly replySourcePort: Port;
}

/** What decides whether a flow is stale. */
export interface StaleFlowOptions {
  readonly table: ForwardingTable;
  /** Whether an address is one of this node's, loopback excluded. */
  readonly isLocalAddress: (address: IpAddress) => boolean;
  /** Services whose flows are left alone, because the kernel does not do what the table says. */
  readonly except?: Pick<ReadonlySet<ServicePortKey>, 'has'> | undefined;
  /** Endpoints to which the kernel translated a moment ago, of removed frontends. Default: none. */
  readonly former?: readonly FormerEndpoints[];
}

/** Tells stale flows from others. */
export interface FlowJudge {
  /** No flow to another port can be stale: a cheap question to ask first. Empty: no flow can. */
  readonly destinationPorts: ReadonlySet<Port>;
  readonly isStale: (flow: UdpFlow) => boolean;
}

/**
 * Which flows are to be deleted: those to a UDP frontend of the table that lead to anything but an
 * endpoint that still serves, and those to a removed frontend that lead to an endpoint it had.
 * UDP has no handshake that would notice: a client that keeps sending from one port would talk to a
 * dead address for as long as it sends.
 *
 * - A flow to any serving endpoint of the service stays, whatever policy or topology prefers now.
 * - A service without a serving endpoint loses all its flows.
 * - A flow that was never translated counts too: it began before the service had an endpoint.
 * - A NodePort is compared only for destinations on which this node answers NodePorts. Others merely
 *   pass through with the same port number. A removed one is compared on every address of this
 *   node, because the selection of addresses may have changed with it.
 * - Flows to anything else, TCP and SCTP are nobody's business here.
 */
export function flowJudge({ table, isLocalAddress, except, former = [] }: StaleFlowOptions): FlowJudge {
  const places: Places<ServiceForwarding> = new Map();
  for (const service of table.services.values()) {
    if (service.protocol !== 'UDP' || except?.has(service.key) === true) continue;
    for (const { address, port } of service.frontends) portOf(places, port).set(address, service);
  }
  const formerPlaces = joinFormer(former);
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

/** By place; two Services may have had the same one after another. */
function joinFormer(former: readonly FormerEndpoints[]): Places<ReadonlySet<string>> {
  const places: Places<ReadonlySet<string>> = new Map();
  for (const { address, port, endpoints } of former) {
    const ofPort = portOf(places, port);
    ofPort.set(address, ofPort.get(address)?.union(endpoints) ?? endpoints);
  }
  return places;
}

/** The entry of the flow's destination: of the address itself, else of the NodePort if `isNodePort` accepts the address. */
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
 * Whether stale flows may be left when `after` takes the place of `before` (undefined: unknown). An
 * endpoint more, or one that begins to terminate and still serves, leaves none. Frontends that go are
 * found by `formerEndpoints`.
 */
export function canLeaveStaleFlows(before: ServiceForwarding | undefined, after: ServiceForwarding): boolean {
  if (after.protocol !== 'UDP') return false;
  if (before === undefined || before.protocol !== 'UDP') return true;
  const places = new Set(before.frontends.map(({ address, port }) => placeOf(address, port)));
  if (after.frontends.some(({ address, port }) => !places.has(placeOf(address, port)))) return true;
  const serving = servingPlaces(before);
  return serving.size === 0 || !serving.isSubsetOf(servingPlaces(after));
}

/** Endpoints to which the kernel translated flows of one UDP frontend until a moment ago. */
export interface FormerEndpoints {
  readonly service: ServicePortKey;
  readonly address: Frontend['address'];
  readonly port: Port;
  /** As `address port`. */
  readonly endpoints: ReadonlySet<string>;
}

interface Remembered {
  readonly former: FormerEndpoints;
  readonly since: Millis;
}

/** A datagram that was being translated during the apply enters the connection tracking within this time. */
const settleTime: Millis = seconds(1);
/** The oldest are forgotten beyond this number; their flows end by their own timeout (30 to 120 s without a datagram). */
const maxRemembered = 10_000;

/**
 * Remembers the endpoints of UDP frontends that were just removed (deleted Service, removed port or address;
 * kubernetes/kubernetes#141371), and endpoints that a frontend has just lost, because the frontend may be removed next. No
 * table names them, and their flows would go on for as long as the client sends. Each is remembered until a look for stale
 * flows has succeeded that began one second after the kernel took the change.
 */
export class RecentEndpoints {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** The kernel still has the rules of these. */
  #held: readonly FormerEndpoints[] = [];
  #all: readonly Remembered[] = [];
  #current: readonly FormerEndpoints[] = [];

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Another array whenever it differs. */
  get current(): readonly FormerEndpoints[] {
    return this.#current;
  }

  /**
   * An apply is over that was to take `former` out of the kernel, and did so but for the services of `failed`. Those are
   * held back until an apply succeeds. `isNew`: there are more to look for; `forgotten`: how many exceeded the bound.
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

  /** A look for flows to the current ones, which began at `start`, has succeeded. */
  noteLook(start: Millis): void {
    if (this.#all.length > 0) this.#set(this.#all.filter(({ since }) => start - since < settleTime));
  }

  #set(all: readonly Remembered[]): void {
    this.#all = all;
    this.#current = all.map(({ former }) => former);
  }
}

/**
 * The endpoints that UDP frontends of `applied` lose with `table`, among the services that the delta between the two names:
 * removed frontends lose all their endpoints, others those that no longer serve.
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

/** An address and a port as the key of a map. */
function placeOf(address: Frontend['address'], port: Port): string {
  return `${address} ${port}`;
}

/** Endpoints that still serve, terminating or not, as `placeOf` writes them. */
function servingPlaces({ knownEndpoints }: ServiceForwarding): ReadonlySet<string> {
  return new Set(knownEndpoints.flatMap(({ serving, address, port }) => (serving ? [placeOf(address, port)] : [])));
}
