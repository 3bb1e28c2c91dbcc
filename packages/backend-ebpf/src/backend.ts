import {
  type ApplyOutcome,
  type ApplyRequest,
  type BackendCapabilities,
  type BackendObservers,
  type DataplaneBackend,
  type Drift,
  runApply,
  type ServiceCounters,
} from '@switchyard/core/engine';
import { type IpFamily, type Logger, type PodDetector, runTogether, type ServicePortKey } from '@switchyard/core';
import { AppliedTable } from './kernel/applied-table.ts';
import type { ServiceStatistics } from './kernel/service-statistics.ts';
import type { EbpfKernel } from './kernel/kernel.ts';
import { dumpMaps } from './kernel/maps/dump.ts';
import { sumCounters } from './kernel/merge-outcomes.ts';
import type { OpenMapSet } from './kernel/open-map-set.ts';
import type { Programs } from './kernel/programs/programs.ts';
import { RulesPart } from './kernel/remainder/rules-part.ts';

/** Who forwards what comes from outside. */
export interface WireState extends AsyncDisposable {
  /** Whether programs do: found out when it is first asked. Rejects with `HostError` where it cannot be found out; then it is asked anew. */
  isUsed(signal: AbortSignal): Promise<boolean>;
  /** Whether rules must carry all of the table beside programs, for devices that no program can serve. Rejects with `HostError`. */
  needsRules(podDetector: PodDetector): Promise<boolean>;
  /** Takes away what programs of the wire of any version left; in words. */
  remove(signal: AbortSignal): Promise<readonly string[]>;
}

/** Follows the kernel. */
export interface KernelWatch {
  /** To be held while something of ours writes: that is no drift. */
  hold(): Disposable;
  /** As `BackendObservers.drift`, for maps, programs and links. */
  watch(report: (drift: Drift) => void, signal: AbortSignal): Promise<void>;
}

/** What a backend is made of; `open-backend.ts` makes them for a machine. */
export interface EbpfParts {
  readonly ipFamily: IpFamily;
  readonly kernel: EbpfKernel;
  readonly maps: OpenMapSet;
  readonly programs: Programs;
  readonly wire: WireState;
  /** The nftables backend, under table names of its own: what programs do not carry. Disposed with the backend. */
  readonly rules: DataplaneBackend;
  readonly statistics: ServiceStatistics;
  readonly watching: KernelWatch;
  readonly capabilities: BackendCapabilities;
  readonly logger: Logger;
}

/** Drives one IP family with BPF programs, and with nftables rules for what programs do not carry. Families share nothing. */
export class EbpfBackend implements DataplaneBackend {
  readonly name = 'ebpf';
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities;
  readonly observers: BackendObservers;
  readonly #parts: EbpfParts;
  readonly #rules: RulesPart;
  readonly #applied: AppliedTable;

  constructor(parts: EbpfParts) {
    this.ipFamily = parts.ipFamily;
    this.capabilities = parts.capabilities;
    this.#parts = parts;
    this.#rules = new RulesPart(parts.rules);
    this.#applied = new AppliedTable(parts, this.#rules);
    const { age } = parts.rules.observers;
    this.observers = {
      counters: (signal) => this.#counters(signal),
      mapFills: () => parts.programs.writer?.fills() ?? [],
      drift: (report, signal) => this.#watchDrift(report, signal),
      ...(age === undefined ? {} : { age }),
    };
  }

  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    const { watching, logger } = this.#parts;
    using _ = watching.hold();
    return await runApply(this.#applied, request, { signal, logger, ipFamily: this.ipFamily });
  }

  async cleanup(signal: AbortSignal): Promise<readonly string[]> {
    const { rules, wire, kernel, programs, maps, watching } = this.#parts;
    using _ = watching.hold();
    this.#applied.forget();
    programs.forget();
    maps.set(undefined);
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
    const { maps, programs, statistics, rules } = this.#parts;
    const ofRules = (await rules.observers.counters?.(signal)) ?? new Map<ServicePortKey, ServiceCounters>();
    if (maps.current === undefined) return sumCounters(statistics.latest, ofRules);
    const services = [...programs.services()];
    const keys = new Set(services.map(({ key }) => key));
    const isKnown = (key: ServicePortKey): boolean => keys.has(key);
    const reading = { statistics: () => maps.get().statistics, services, isKnown };
    return sumCounters(await statistics.read(reading, signal), ofRules);
  }

  async #watchDrift(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const { watching } = this.#parts;
    await runTogether(
      [(until) => this.#rules.watchDrift(report, until), (until) => watching.watch(report, until)],
      signal,
    );
  }

  /** Forwarding stays. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { rules, wire, kernel, programs, maps } = this.#parts;
    this.#applied.forget();
    programs.forget();
    maps.set(undefined);
    await rules[Symbol.asyncDispose]();
    await wire[Symbol.asyncDispose]();
    await kernel[Symbol.asyncDispose]();
  }
}
