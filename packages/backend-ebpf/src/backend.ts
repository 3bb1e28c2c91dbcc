import {
  type ApplyOutcome,
  type ApplyRequest,
  type BackendCapabilities,
  type DataplaneBackend,
  diffTables,
  type Drift,
  type ForwardingTable,
  HostError,
  type IpFamily,
  type MapFill,
  type Millis,
  type PodDetector,
  type ServiceCounters,
  type ServicePortKey,
  sorted,
  type TableDelta,
} from '@switchyard/core';
import type { ServiceStatistics } from './counters/service-statistics.ts';
import type { EbpfKernel } from './kernel/kernel.ts';
import { runTogether } from './keep-running.ts';
import { dumpMaps } from './maps/dump.ts';
import { mergeOutcomes, sumCounters } from './merge-outcomes.ts';
import type { OpenMapSet } from './open-map-set.ts';
import type { Programs } from './programs.ts';
import { movesToRules } from './remainder/moves-to-rules.ts';
import { RulesPart, type RulesShare } from './remainder/rules-part.ts';

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
  /** As `DataplaneBackend.watchDrift`, for maps, programs and links. */
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
}

/**
 * Drives one IP family with BPF programs, and with rules of nftables for what programs do not carry. Families share nothing.
 *
 * Maps are written and programs attached before rules that are no longer needed go, and rules come before programs stop carrying
 * what they will carry: whatever moves between the two is in one of them at every moment.
 */
export class EbpfBackend implements DataplaneBackend {
  readonly name = 'ebpf';
  readonly ipFamily: IpFamily;
  readonly capabilities: BackendCapabilities;
  readonly #parts: EbpfParts;
  readonly #rules: RulesPart;
  /** What the kernel has; undefined when that is not known. */
  #known: ForwardingTable | undefined;
  /** The last look for programs of an unused wire found none. */
  #isWireGone = false;

  constructor(parts: EbpfParts) {
    this.ipFamily = parts.ipFamily;
    this.capabilities = parts.capabilities;
    this.#parts = parts;
    this.#rules = new RulesPart(parts.rules);
  }

  async apply({ table, scope }: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    using _ = this.#parts.watching.hold();
    const known = this.#known;
    this.#known = undefined; // whatever ends this halfway
    try {
      const outcome =
        scope.kind === 'delta' && known !== undefined
          ? await this.#applyDelta(table, scope.delta, signal)
          : await this.#applyFull(known, { table, scope: scope.kind === 'full' ? scope : { kind: 'full' } }, signal);
      if (outcome.status !== 'failed') this.#known = table;
      return outcome;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof HostError) return { status: 'failed', error };
      throw error;
    }
  }

  async cleanup(signal: AbortSignal): Promise<readonly string[]> {
    const { rules, wire, kernel, programs, maps, watching } = this.#parts;
    using _ = watching.hold();
    this.#known = undefined;
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

  async counters(signal: AbortSignal): Promise<ReadonlyMap<ServicePortKey, ServiceCounters>> {
    const { maps, programs, statistics, rules } = this.#parts;
    const ofRules = (await rules.counters?.(signal)) ?? new Map<ServicePortKey, ServiceCounters>();
    if (maps.current === undefined) return sumCounters(statistics.latest, ofRules);
    const services = [...programs.services()];
    const keys = new Set(services.map(({ key }) => key));
    const isKnown = (key: ServicePortKey): boolean => keys.has(key);
    const reading = { statistics: () => maps.get().statistics, services, isKnown };
    return sumCounters(await statistics.read(reading, signal), ofRules);
  }

  mapFills(): readonly MapFill[] {
    return this.#parts.programs.writer?.fills() ?? [];
  }

  async watchDrift(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const { watching } = this.#parts;
    await runTogether(
      [(until) => this.#rules.watchDrift(report, until), (until) => watching.watch(report, until)],
      signal,
    );
  }

  async markReconciled(signal: AbortSignal): Promise<void> {
    await this.#parts.rules.markReconciled?.(signal);
  }

  async unreconciledFor(signal: AbortSignal): Promise<Millis | undefined> {
    return this.#parts.rules.unreconciledFor?.(signal);
  }

  /** Forwarding stays. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { rules, wire, kernel, programs, maps } = this.#parts;
    this.#known = undefined;
    programs.forget();
    maps.set(undefined);
    await rules[Symbol.asyncDispose]();
    await wire[Symbol.asyncDispose]();
    await kernel[Symbol.asyncDispose]();
  }

  async #applyDelta(table: ForwardingTable, delta: TableDelta, signal: AbortSignal): Promise<ApplyOutcome> {
    const { programs } = this.#parts;
    const plan = this.#rules.plan(table, delta);
    const early = await this.#rules.before(plan, signal);
    if (early?.status === 'failed') return early;
    const refused = early?.status === 'partial' ? early.failed : undefined;
    const written = await programs.applyDelta(table, refused ? without(delta, refused) : delta, signal);
    if (refused) programs.noteIncomplete();
    return mergeOutcomes(written, [early, await this.#rules.after(plan, table, signal)]);
  }

  async #applyFull(
    known: ForwardingTable | undefined,
    { table, scope }: ApplyRequest,
    signal: AbortSignal,
  ): Promise<ApplyOutcome> {
    const { programs, kernel, wire } = this.#parts;
    const isWireUsed = await wire.isUsed(signal);
    const share = isWireUsed && !(await wire.needsRules(table.podDetector)) ? 'remainder' : 'all';
    if (isWireUsed) this.#isWireGone = false; // also if this ends halfway
    const plan = known && this.#rules.knows(share) ? this.#rules.plan(table, diffTables(known, table)) : undefined;
    const early = await (plan ? this.#rules.before(plan, signal) : this.#addRules(table, share, signal));
    if (early?.status === 'failed') return early;
    const refused = plan && early?.status === 'partial' ? early.failed : undefined;
    const after = scope.kind === 'full' ? scope.after : undefined;
    const written = await programs.applyFull(refused ? withFormer(table, known, refused) : table, after, signal);
    const late =
      plan !== undefined && this.#rules.isRight(scope, share)
        ? await this.#rules.after(plan, table, signal)
        : await this.#rules.applyFull({ table, scope }, share, signal);
    const outcome = mergeOutcomes(written, [early, late]);
    if (outcome.status === 'failed') return outcome;
    // Only now programs of the wire may go: rules forward what comes from outside, all of it.
    const removed = isWireUsed ? 0 : await this.#removeWire(signal);
    const writes = outcome.writes + removed + (await kernel.removeOtherVersions(signal));
    return { ...outcome, writes };
  }

  /**
   * What another process left goes, such as an agent of another configuration. While something was found it is looked again: that
   * process may still run for a moment, and heal what it believes to be its own. Returns how much went.
   */
  async #removeWire(signal: AbortSignal): Promise<number> {
    if (this.#isWireGone) return 0;
    const removed = await this.#parts.wire.remove(signal);
    this.#isWireGone = removed.length === 0;
    return removed.length;
  }

  /** Nobody remembers who carries what: where programs are about to leave something to rules, these have it first. */
  async #addRules(table: ForwardingTable, share: RulesShare, signal: AbortSignal): Promise<ApplyOutcome | undefined> {
    const found = share === 'remainder' ? await this.#parts.kernel.findMaps(signal) : undefined;
    return found !== undefined && movesToRules(found, table) ? this.#rules.add(table, signal) : undefined;
  }
}

type Refused = ReadonlyMap<ServicePortKey, Error>;

/** What rules refused is not to be left to them by programs. */
function without(delta: TableDelta, refused: Refused): TableDelta {
  return { ...delta, upserted: delta.upserted.filter(({ key }) => !refused.has(key)) };
}

/** The table with those Services as they are now. */
function withFormer(table: ForwardingTable, known: ForwardingTable | undefined, refused: Refused): ForwardingTable {
  const keys = [...refused.keys()];
  const former = keys.flatMap((key) => known?.services.get(key) ?? []);
  return { ...table, services: sorted(table.services).with(former, keys) };
}
