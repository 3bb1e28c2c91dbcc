import {
  addressAndPort,
  type Cidr,
  cidrContains,
  type DataplaneTraits,
  type ForwardingTable,
  HostError,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  type Millis,
  millis,
  type Port,
  type ServicePortKey,
} from '@switchyard/core';
import type { NodeView } from './causes/drop-subject.ts';
import { explainDrop, type Loss } from './causes/explain-drop.ts';
import { causes } from './causes/causes.ts';
import { type ServerPlace, ServiceIndex } from './causes/service-index.ts';
import { type ListenOverflow, ListenOverflows } from './kernel/listen-overflows.ts';
import { NodeNamespaces, type ProcessNamespace } from './kernel/namespaces.ts';
import { type ConntrackState, type ReadFile, readConntrackState } from './kernel/conntrack-state.ts';
import type { UnansweredFlow } from './kernel/unanswered-flows.ts';
import type { DropCounter, PlacedDrop } from './kernel/drop-counter.ts';
import { type ReadCounters, RefusalCounts } from './refusal-counts.ts';
import { type AskedPlace, WaitingFlows } from './waiting-flows.ts';

/** Forwarding of the node's proxy, and the addresses that make a packet the node's. */
export interface ServiceView {
  readonly tables: ReadonlyMap<IpFamily, ForwardingTable>;
  /** Time since each table is in the kernel, in milliseconds. */
  readonly tableAges: ReadonlyMap<IpFamily, Millis>;
  /** Time that the proxy may take to apply a table: 0 for the agent's own, which are in the kernel. */
  readonly proxyLag: Millis;
  readonly traits: DataplaneTraits;
  readonly nodeAddresses: readonly IpAddress[];
  /**
   * Addresses of this node's pods. Nodes in containers share a kernel: where the namespaces of pods cannot be listed, these addresses
   * separate their drops. Empty: all drops are this node's.
   */
  readonly podCidrs: readonly Cidr[];
}

/** Losses since the last reading. */
export interface LossReading {
  /** Equal ones are one, with their sum as `count`. */
  readonly losses: readonly Loss[];
  /** Dropped packets of no Service, and those that lose nothing. */
  readonly unrelated: number;
  /** Dropped packets whose flows were too many to keep: of whose they were is not known. */
  readonly missed: number;
}

/** Sources of a reader. At least one of `counter` and `readCounters`. */
export interface LossSources {
  /** Cookie of the node's own network namespace; 0: unknown. */
  readonly netns: number;
  /** Packets that the kernel drops; undefined where they cannot be watched. The reader owns it. */
  readonly counter: DropCounter | undefined;
  /** Refusals without a packet; undefined where each refusal drops one, and `counter` is there. */
  readonly readCounters: ReadCounters | undefined;
  readonly readFile: ReadFile;
  /** Network namespaces of the node and its pods, to separate their drops from others' and to find full accept queues. Default: none are looked at. */
  readonly namespaces?: () => readonly ProcessNamespace[];
  /** Connections without an answer. Default: they are not looked at. May throw `HostError`. */
  readonly unanswered?: () => readonly UnansweredFlow[];
  /** See `NodeView`. */
  readonly chainsAt?: NodeView['chainsAt'];
  /** Now, of CLOCK_MONOTONIC. */
  readonly monotonic: () => Millis;
}

interface AppliedTable {
  readonly table: ForwardingTable;
  /** Time of its apply, of CLOCK_MONOTONIC. */
  readonly from: Millis;
}

/** The time of an apply is taken a little after the kernel has it. */
const clockSlack = millis(20);
/** More than the time between two readings. */
const historyTime = millis(5_000);

/** Reads losses of Services and explains them. */
export class LossReader implements Disposable {
  readonly #sources: LossSources;
  readonly #refusals: RefusalCounts | undefined;
  readonly #indexes = new Map<IpFamily, ServiceIndex>();
  /** Of tables before. */
  readonly #formerIndexes = new Map<IpFamily, ServiceIndex>();
  #conntrack: ConntrackState | undefined;
  readonly #overflows: ListenOverflows;
  readonly #firstHops: Readonly<Record<IpFamily, number>>;
  /** Of the node, with NodePorts, since the watch began. */
  readonly #addresses = new Set<IpAddress>();
  /** Undefined without the right to list flows, too. */
  #waiting: WaitingFlows | undefined;
  #waitingRead: number = -Infinity;
  readonly #namespaces: NodeNamespaces | undefined;
  #queuesRead: number = -Infinity;
  /** Tables of each family, oldest first. */
  readonly #histories = new Map<IpFamily, AppliedTable[]>();

  constructor(sources: LossSources) {
    const { readCounters, readFile, namespaces, monotonic, unanswered } = sources;
    this.#sources = sources;
    this.#namespaces = namespaces === undefined ? undefined : new NodeNamespaces(namespaces, monotonic);
    this.#refusals = readCounters === undefined ? undefined : new RefusalCounts(readCounters);
    this.#conntrack = readConntrackState(readFile);
    this.#overflows = new ListenOverflows(readFile);
    this.#firstHops = {
      IPv4: Number(readFile('/proc/sys/net/ipv4/ip_default_ttl') ?? usualHops),
      IPv6: Number(readFile('/proc/sys/net/ipv6/conf/default/hop_limit') ?? usualHops),
    };
    this.#waiting = unanswered === undefined ? undefined : new WaitingFlows(unanswered);
  }

  /** Whether packets are watched, and not only counters. */
  get watchesPackets(): boolean {
    return this.#sources.counter !== undefined;
  }

  /** Losses count from here on. Rejects as `read`. */
  async start(view: ServiceView, signal: AbortSignal): Promise<void> {
    this.noteTables(view);
    this.#noteAddresses(view);
    this.#fullQueues(view);
    this.#waitingConnections(view);
    await this.#refusals?.read(signal);
  }

  /** Rejects with `NativeError`, and the reason of the signal. */
  async read(view: ServiceView, signal: AbortSignal): Promise<LossReading> {
    this.noteTables(view); // its ages are of this moment
    const refusals = await this.#refusals?.read(signal);
    const { drops, missed } = this.#sources.counter?.read() ?? { drops: [], missed: 0 };
    const { losses, unrelated } = this.#explain(drops, view);
    this.#waiting?.noteDrops(losses);
    const full = [...this.#fullQueues(view), ...this.#waitingConnections(view)];
    const more = refusals === undefined ? [] : (this.#refusals?.missing(refusals, losses, view) ?? []);
    return { losses: [...losses, ...more, ...full], unrelated, missed };
  }

  #explain(drops: readonly PlacedDrop[], view: ServiceView): Pick<LossReading, 'losses' | 'unrelated'> {
    const conntrack = this.#newConntrackDrops();
    const nodeAddresses = new Set(view.nodeAddresses);
    this.#noteAddresses(view);
    const formerAddresses = this.#addresses.difference(nodeAddresses);
    const losses = new Map<string, Loss>();
    let unrelated = 0;
    for (const drop of drops) {
      if (!this.#isOfNode(drop, view)) continue;
      const table = view.tables.get(ipFamilyOf(drop.source));
      const tableBefore = table === undefined ? undefined : this.#tableBefore(drop, table, view);
      const loss =
        table === undefined
          ? undefined
          : explainDrop(drop, {
              ...view,
              netns: this.#sources.netns,
              table,
              tableBefore,
              tableThen: this.#tableAt(drop, table),
              index: indexOf(this.#indexes, table),
              indexBefore: tableBefore === undefined ? undefined : indexOf(this.#formerIndexes, tableBefore),
              nodeAddresses,
              formerAddresses,
              conntrack,
              firstHops: this.#firstHops[table.ipFamily],
              chainsAt: this.#sources.chainsAt,
            });
      if (loss === undefined) unrelated += drop.count;
      else merge(losses, loss);
    }
    return { losses: [...losses.values()], unrelated };
  }

  /** Looked at once a second while tables change, because the kernel looks at each entry: 10 ms for a table of 262,144 buckets. */
  #waitingConnections(view: ServiceView): readonly Loss[] {
    const { monotonic } = this.#sources;
    const isFirst = this.#waitingRead === -Infinity;
    const isChanging = isFirst || [...view.tableAges.values()].some((age) => age < changingTime);
    if (this.#waiting === undefined || !isChanging || monotonic() - this.#waitingRead < secondOfReadings) return [];
    this.#waitingRead = monotonic();
    return this.#fromWaiting(view, (waiting) => waiting.read(view, this.#indexes));
  }

  /**
   * Connections of a client to a place that began after `start`, and wait at this moment for an endpoint that the Service does not have any
   * more. `read` reports them a second later, and only after a change.
   */
  waitingOf(asked: AskedPlace, view: ServiceView): readonly Loss[] {
    return this.#fromWaiting(view, (waiting) => waiting.waitingOf(asked, view, this.#indexes));
  }

  #fromWaiting(view: ServiceView, lossesOf: (waiting: WaitingFlows) => readonly Loss[]): readonly Loss[] {
    if (this.#waiting === undefined) return [];
    for (const table of view.tables.values()) indexOf(this.#indexes, table);
    const found = new Map<string, Loss>();
    try {
      for (const loss of lossesOf(this.#waiting)) merge(found, loss);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      this.#waiting = undefined;
    }
    return [...found.values()];
  }

  /** Accept queues of endpoints that refused connections; looked at once a second, because each namespace is a file to read. */
  #fullQueues(view: ServiceView): readonly Loss[] {
    const { monotonic } = this.#sources;
    if (this.#namespaces === undefined || monotonic() - this.#queuesRead < secondOfReadings) return [];
    this.#queuesRead = monotonic();
    return this.#overflows.read(this.#namespaces.current()).flatMap((overflow) => {
      for (const { address, port } of overflow.listeners) {
        const table = view.tables.get(ipFamilyOf(address));
        const place = { protocol: 'TCP', address, port } as const;
        const services =
          table === undefined
            ? []
            : indexOf(this.#indexes, table)
                .servicesOfEndpoint(place)
                .map(({ key }) => key);
        if (services.length > 0) return [fullQueue(overflow, place, services)];
      }
      return [];
    });
  }

  /**
   * Adds the current tables to the history, which reaches back as far as a drop of one reading may need. Call it after each apply, or drops
   * of two changes between two readings may be explained by a table before both.
   */
  noteTables({ tables, tableAges, proxyLag }: ServiceView): void {
    const now = this.#sources.monotonic();
    for (const [ipFamily, table] of tables) {
      const history = this.#histories.get(ipFamily) ?? [];
      if (history.at(-1)?.table !== table) history.push({ table, from: millis(now - (tableAges.get(ipFamily) ?? 0)) });
      while ((history[1]?.from ?? Infinity) < now - proxyLag - historyTime) history.shift();
      this.#histories.set(ipFamily, history);
    }
  }

  #noteAddresses({ nodeAddresses, tables }: ServiceView): void {
    for (const address of nodeAddresses) {
      const cidrs = tables.get(ipFamilyOf(address))?.nodePortCidrs ?? [];
      if (cidrs.some((cidr) => cidrContains(cidr, address))) this.#addresses.add(address);
    }
  }

  /** The table at the time of a drop. */
  #tableAt({ last }: PlacedDrop, table: ForwardingTable): ForwardingTable {
    return this.#inForce(table, last + clockSlack);
  }

  /** The table whose rules a drop may have met although a newer one is applied. */
  #tableBefore({ last }: PlacedDrop, table: ForwardingTable, { proxyLag }: ServiceView): ForwardingTable | undefined {
    const inForce = this.#inForce(table, last - clockSlack - proxyLag);
    return inForce === table ? undefined : inForce;
  }

  /** The table of the same family that was in force at a time, the oldest known one before; `table` without a history. */
  #inForce(table: ForwardingTable, time: number): ForwardingTable {
    const history = this.#histories.get(table.ipFamily) ?? [];
    return (history.findLast(({ from }) => from <= time) ?? history[0])?.table ?? table;
  }

  #newConntrackDrops(): { readonly full: number; readonly clashes: number } {
    const before = this.#conntrack;
    const now = readConntrackState(this.#sources.readFile);
    this.#conntrack = now;
    if (before === undefined || now === undefined) return { full: 0, clashes: 0 };
    return { full: now.full - before.full, clashes: now.clashes - before.clashes };
  }

  /** Whether this node's namespace or one of its pods dropped it. Nodes in containers share one kernel, which counts for all. */
  #isOfNode({ netns, source, destination, place }: PlacedDrop, view: ServiceView): boolean {
    if (netns === this.#sources.netns || netns === 0) return true;
    const isListed = this.#namespaces?.has(netns);
    if (isListed !== undefined || view.podCidrs.length === 0) return isListed ?? true;
    const isPod = (address: IpAddress): boolean => view.podCidrs.some((cidr) => cidrContains(cidr, address));
    return isPod(destination) || (isPod(source) && (place.at === 'output' || place.at === 'postrouting'));
  }

  [Symbol.dispose](): void {
    this.#sources.counter?.[Symbol.dispose]();
  }
}

/** The family's index, which follows the table from here on. */
function indexOf(indexes: Map<IpFamily, ServiceIndex>, table: ForwardingTable): ServiceIndex {
  const index = indexes.get(table.ipFamily) ?? new ServiceIndex();
  indexes.set(table.ipFamily, index);
  index.follow(table);
  return index;
}

const usualHops = 64;
/** Time after a change in which connections to deleted endpoints are looked for. */
const changingTime = millis(10_000);
/** A second, less than a reading, which comes twice a second. */
const secondOfReadings = 900;

function fullQueue(
  { count }: ListenOverflow,
  { address, port }: ServerPlace,
  services: readonly ServicePortKey[],
): Loss {
  const place = addressAndPort(address, port as Port); // of a listening socket
  return {
    cause: 'acceptQueueFull',
    why: `the accept queue of the application at ${place} is full`,
    advice: causes.acceptQueueFull,
    certainty: 'likely',
    service: services[0],
    services,
    frontend: `${place}/TCP`,
    client: undefined,
    direction: 'request',
    where: { netns: 'pod', hook: undefined },
    reason: 'ListenOverflows',
    count,
  };
}

function merge(losses: Map<string, Loss>, loss: Loss): void {
  const { cause, service, frontend, client, direction, where, why } = loss;
  const key = [cause, service, frontend, client, direction, where.netns, where.hook, why].join(' ');
  const before = losses.get(key);
  losses.set(key, before === undefined ? loss : { ...before, count: before.count + loss.count });
}
