import {
  type Clock,
  HostError,
  type IpFamily,
  type Logger,
  type Millis,
  runTogether,
  seconds,
  type ServicePortKey,
} from '@switchyard/core';
import {
  type ApplyOutcome,
  type ApplyRequest,
  type BackendCapabilities,
  type BackendObservers,
  createApply,
  type DataplaneBackend,
  type Drift,
  type ServiceCounters,
} from '@switchyard/core/engine';
import { AppliedTable } from './kernel/applied-table.ts';
import type { EbpfKernel, Wire } from './kernel/kernel.ts';
import { dumpMaps } from './kernel/maps/dump.ts';
import { sumCounters } from './kernel/merge-outcomes.ts';
import type { NodeAddresses } from './kernel/node-addresses/node-addresses.ts';
import type { OpenMapSet } from './kernel/open-map-set.ts';
import { capabilitiesOf } from './kernel/probe.ts';
import { Programs, type SettingsPart } from './kernel/programs/programs.ts';
import { RulesPart } from './kernel/remainder/rules-part.ts';
import { ServiceStatistics } from './kernel/service-statistics.ts';
import type { StaleSockets } from './kernel/stale-sockets/stale-sockets.ts';
import { EbpfDrift, type Fault } from './watch/ebpf-drift.ts';

/** Parts of one family's backend: of a kernel, or for tests in memory. */
export interface BackendParts {
  readonly ipFamily: IpFamily;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Shared by all parts; no maps are open yet. */
  readonly maps: OpenMapSet;
  readonly kernel: EbpfKernel;
  readonly wire: Wire;
  /** The nftables backend, with table names of its own, for traffic that programs do not carry. Disposed with the backend. */
  readonly rules: DataplaneBackend;
  readonly settings: SettingsPart;
  readonly addresses: NodeAddresses;
  readonly sockets: StaleSockets;
}

/** Drives one IP family with BPF programs, and with nftables rules for traffic that programs do not carry. Families share nothing. */
export class EbpfBackend implements DataplaneBackend {
  readonly name = 'ebpf';
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities;
  readonly observers: BackendObservers;
  readonly #parts: BackendParts;
  readonly #programs: Programs;
  readonly #statistics: ServiceStatistics;
  readonly #rules: RulesPart;
  readonly #applied: AppliedTable;
  readonly #apply: DataplaneBackend['apply'];
  readonly #drift: EbpfDrift;

  constructor(parts: BackendParts) {
    const { ipFamily, clock, maps, kernel, wire, rules, settings, addresses, sockets } = parts;
    this.ipFamily = ipFamily;
    this.capabilities = capabilitiesOf(rules.capabilities);
    this.#parts = parts;
    const noteGone: StaleSockets['note'] = (gone) => sockets.note(gone);
    const programs = new Programs({ kernel, maps, settings: [settings, addresses], wire, clock, noteGone });
    this.#programs = programs;
    this.#statistics = new ServiceStatistics(clock);
    this.#rules = new RulesPart(rules);
    this.#applied = new AppliedTable({ kernel, programs, wire }, this.#rules);
    this.#apply = createApply(this.#applied, { logger: parts.logger, ipFamily });
    this.#drift = driftOf(parts, programs);
    const { age } = rules.observers;
    this.observers = {
      counters: (signal) => this.#counters(signal),
      mapFills: () => programs.writer?.fills() ?? [],
      drift: (report, signal) => this.#watchDrift(report, signal),
      ...(age === undefined ? {} : { age }),
    };
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    using _ = this.#drift.hold();
    return await this.#apply(request, signal);
  }

  async cleanup(signal: AbortSignal): Promise<readonly string[]> {
    const { rules, wire, kernel } = this.#parts;
    using _ = this.#drift.hold();
    this.#forget();
    // In the reverse order of attaching; another mode forwards already.
    const removed = [await rules.cleanup(signal), await wire.remove(signal), await kernel.remove(signal)];
    return removed.flat();
  }

  async dump(signal: AbortSignal): Promise<string> {
    const { kernel, maps, rules } = this.#parts;
    const found = maps.current ?? (await kernel.findMaps(signal));
    const texts = [found === undefined ? '' : dumpMaps(found), await rules.dump(signal)];
    return texts.filter((text) => text !== '').join('\n');
  }

  async #counters(signal: AbortSignal): Promise<ReadonlyMap<ServicePortKey, ServiceCounters>> {
    const { maps, rules } = this.#parts;
    const statistics = this.#statistics;
    const ofRules = (await rules.observers.counters?.(signal)) ?? new Map<ServicePortKey, ServiceCounters>();
    if (maps.current === undefined) return sumCounters(statistics.latest, ofRules);
    const services = [...this.#programs.services()];
    const keys = new Set(services.map(({ key }) => key));
    const isKnown = (key: ServicePortKey): boolean => keys.has(key);
    const reading = { statistics: () => maps.get().statistics, services, isKnown };
    return sumCounters(await statistics.read(reading, signal), ofRules);
  }

  async #watchDrift(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const { addresses, wire, sockets } = this.#parts;
    const followers: readonly Follower[] = [
      { name: 'addresses of the node', run: (until) => addresses.follow(until) },
      { name: 'network devices', run: (until) => wire.follow(until) },
      { name: 'sockets of deleted endpoints', run: (until) => sockets.run(until) },
    ];
    await runTogether(
      [
        (until) => this.#rules.watchDrift(report, until),
        (until) => this.#drift.watch(report, until),
        (until) => keepRunning(followers, this.#parts, until),
      ],
      signal,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { rules, wire, kernel } = this.#parts;
    this.#forget();
    await rules[Symbol.asyncDispose]();
    await wire[Symbol.asyncDispose]();
    await kernel[Symbol.asyncDispose]();
  }

  #forget(): void {
    this.#applied.forget();
    this.#programs.forget();
    this.#parts.maps.set(undefined);
  }
}

function driftOf({ clock, kernel, wire, settings, addresses }: BackendParts, programs: Programs): EbpfDrift {
  const hasApplied = (): boolean => programs.writer !== undefined;
  return new EbpfDrift({
    clock,
    fingerprint: (extent) => {
      const links = programs.writer?.hasForeignWords === false ? wire.links() : undefined;
      return links && kernel.fingerprint(links, extent);
    },
    looks: [
      async (signal) => (hasApplied() ? (await kernel.findFaults(signal)).map(faultOf) : []),
      async (signal) => (hasApplied() ? (await wire.findFaults(signal)).map(faultOf) : []),
      () => (hasApplied() ? [...settings.findDamage(), ...addresses.findDamage()].map(contentFault) : []),
    ],
    content: () => programs.writer?.scanDamage() ?? [],
  });
}

function faultOf(text: string): Fault {
  const kind = text.startsWith('map ') ? 'map' : text.includes(' table inet ') ? 'table' : 'program';
  return { kind, text };
}

function contentFault(text: string): Fault {
  return { kind: 'element', text };
}

interface Follower {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

const pause: Millis = seconds(1);
/** Run time after which a follower counts as recovered. */
const wellAfter: Millis = seconds(60);

/** Runs followers until aborted. Restarts a failed one after a second, and logs a warning for the first failure after a recovery. */
export async function keepRunning(
  followers: readonly Follower[],
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(followers.map((one) => keepOne(one, { clock, logger }, signal)));
}

async function keepOne(
  { name, run }: Follower,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  let hasFailed = false;
  while (!signal.aborted) {
    const start = clock.monotonic();
    try {
      await run(signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof HostError)) throw error;
      if (clock.monotonic() - start >= wellAfter) hasFailed = false;
      const log = hasFailed ? logger.debug : logger.warn;
      log.call(logger, 'cannot follow the kernel; will be tried again every second', { what: name, error });
      hasFailed = true;
    }
    await clock.sleep(pause, signal).catch(() => undefined);
  }
}
