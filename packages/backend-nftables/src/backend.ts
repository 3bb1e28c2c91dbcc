import {
  type AppliedState,
  ApplyEngine,
  type BackendCapabilities,
  type BackendObservers,
  createApply,
  type DataplaneBackend,
  type ServiceCounters,
  ServiceCounts,
  ServiceTracker,
} from '@switchyard/core/engine';
import {
  type Clock,
  HostError,
  type IpFamily,
  type Logger,
  type Millis,
  type ServicePortKey,
  systemClock,
} from '@switchyard/core';
import { countElements, readCounts } from './kernel/count-elements.ts';
import { NftablesDriver } from './kernel/driver.ts';
import { dumpKernel } from './kernel/dump.ts';
import { suffixOf, type TableNames, tableNames } from './render/names.ts';
import { findTables, removeFamily, type TableLookup } from './kernel/tables.ts';
import { capabilitiesOf } from './kernel/probe.ts';
import { type HeldElements, placedServices } from './kernel/service-elements.ts';
import type { NftTransport } from './kernel/transport.ts';

/** The machine that this backend programs. */
export interface NftablesHost {
  readonly logger: Logger;
  /** Path of the network namespace to be programmed; default: the process's own. */
  readonly netns?: string | undefined;
  /** For durations in the log; default: the machine's. */
  readonly clock?: Clock;
  /** Names of the nft table. Library users need names of their own; default: those of the nftables mode. */
  readonly tableNames?: TableNames;
  /** Opens the transport to the kernel; default: a netlink socket. Tests pass a fake kernel. */
  readonly openTransport?: () => NftTransport;
}

/** Drives one IP family of the nftables rule set. */
export class NftablesBackend implements DataplaneBackend {
  readonly name = 'nftables';
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities;
  readonly observers: BackendObservers;
  readonly apply: DataplaneBackend['apply'];
  readonly #transport: NftTransport;
  readonly #clock: Clock;
  readonly #names: TableNames;
  readonly #counts: ServiceCounts = new ServiceCounts();
  readonly #tracker: ServiceTracker<HeldElements> = new ServiceTracker<HeldElements>();
  readonly #driver: NftablesDriver;
  readonly #engine: AppliedState;

  /** `transport` is disposed with the backend. */
  constructor(host: NftablesHost, transport: NftTransport, ipFamily: IpFamily) {
    this.ipFamily = ipFamily;
    this.#transport = transport;
    this.#clock = host.clock ?? systemClock;
    this.#names = host.tableNames ?? tableNames;
    this.capabilities = capabilitiesOf(transport);
    const suffix = suffixOf(ipFamily);
    const { keeper } = transport;
    const { logger } = host;
    const [clock, names, counts] = [this.#clock, this.#names, this.#counts];
    this.observers = {
      counters: (signal) => this.#counters(signal),
      age: { mark: (signal) => this.#markAge(signal), read: (signal) => this.#readAge(signal) },
      ...(keeper === undefined
        ? {}
        : {
            drift: (report, signal) =>
              keeper.watch({ suffix, clock, tables: names, written: () => this.#driver.name }, report, signal),
          }),
    };
    const tracker = this.#tracker;
    this.#driver = new NftablesDriver({ transport, ipFamily, names, counts, clock, logger, tracker });
    this.#engine = new ApplyEngine(this.#driver, tracker);
    this.apply = createApply(this.#engine, { logger, ipFamily });
  }

  async cleanup(signal: AbortSignal): Promise<readonly string[]> {
    this.#engine.forget();
    const { current, others } = await findTables(this.#lookup, signal);
    const removed: string[] = [];
    for (const table of current === undefined ? others : [current, ...others]) {
      const what = await removeFamily(this.#transport, table, this.ipFamily, signal);
      if (what !== undefined) removed.push(what);
    }
    return removed;
  }

  async dump(signal: AbortSignal): Promise<string> {
    const { current, others } = await findTables(this.#lookup, signal);
    const table = others.find((name) => name === this.#driver.name) ?? current;
    if (table === undefined) return '';
    const kernel = await this.#driver.read(table, signal);
    const classes = await this.#transport.readClasses(table, suffixOf(this.ipFamily), signal);
    return dumpKernel({ kernel, classes, family: this.ipFamily }, signal);
  }

  /** Takes 3 to 4 ms per 1,000 frontends over netlink, most of it in the kernel. May be called while an apply is under way. */
  async #counters(signal: AbortSignal): Promise<ReadonlyMap<ServicePortKey, ServiceCounters>> {
    const { name: table } = this.#driver;
    if (table === undefined) return this.#counts.latest;
    this.#counts.beginReading();
    const suffix = suffixOf(this.ipFamily);
    const reading = await readCounts(this.#transport, table, suffix, signal);
    if (reading === undefined) return this.#counts.latest;
    const isKnown = (key: ServicePortKey): boolean => this.#tracker.get(key) !== undefined;
    return countElements(this.#counts, { services: placedServices(this.#tracker), reading, suffix, isKnown });
  }

  /** A failed heartbeat is only skipped: drift watches and applies find the fault of the table. */
  async #markAge(signal: AbortSignal): Promise<void> {
    const table = this.#driver.name;
    if (table === undefined) throw new HostError('nftables.heartbeat', 'cannot mark the rules as right: no apply yet');
    const heartbeat = { table, suffix: suffixOf(this.ipFamily), now: this.#clock.now() };
    await this.#transport.writeHeartbeat(heartbeat, signal);
  }

  async #readAge(signal: AbortSignal): Promise<Millis | undefined> {
    const suffix = suffixOf(this.ipFamily);
    let youngest: Millis | undefined;
    // Also tables of other builds: they forward packets until the first apply.
    for (const table of this.#names) {
      const age = await this.#transport.readHeartbeat({ table, suffix }, signal);
      if (age !== undefined && (youngest === undefined || age < youngest)) youngest = age;
    }
    return youngest;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#engine.forget();
    await this.#transport[Symbol.asyncDispose](); // forwarding stays
  }

  get #lookup(): TableLookup {
    return { transport: this.#transport, names: this.#names };
  }
}
