import type { AppliedState, ApplyOutcome, ApplyRequest } from '@switchyard/core/engine';
import { diffTables, type ForwardingTable, type ServicePortKey, sorted, type TableDelta } from '@switchyard/core';
import type { EbpfKernel, MapSet, Wire } from './kernel.ts';
import { mergeOutcomes } from './merge-outcomes.ts';
import type { Programs } from './programs/programs.ts';
import type { RulesPart, RulesShare } from './remainder/rules-part.ts';
import { frontendFlags } from '../render/layouts.ts';
import { MapReader } from './maps/read-maps.ts';
import { keyOf } from '../render/render-service.ts';
import { isLeftToRules } from '../render/remainder/left-to-rules.ts';

export interface AppliedParts {
  readonly kernel: EbpfKernel;
  readonly programs: Programs;
  readonly wire: Wire;
}

/**
 * State of programs and rules, and the order in which they follow a table. Programs are attached before rules that they replace are
 * deleted, and rules are added before programs stop carrying their traffic: at every moment one of the two carries traffic that moves
 * between them.
 */
export class AppliedTable implements AppliedState {
  readonly #parts: AppliedParts;
  readonly #rules: RulesPart;
  #known: ForwardingTable | undefined;
  /** The last look for programs of an unused wire found none. */
  #isWireGone = false;

  constructor(parts: AppliedParts, rules: RulesPart) {
    this.#parts = parts;
    this.#rules = rules;
  }

  get isKnown(): boolean {
    return this.#known !== undefined;
  }

  forget(): void {
    this.#known = undefined;
  }

  /** The kernel's state is unknown until this has succeeded. */
  async apply(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
    const { table, scope } = request;
    const known = this.#known;
    this.#known = undefined;
    const outcome = await (scope.kind === 'delta'
      ? this.#applyDelta(table, scope.delta, signal)
      : this.#applyFull(known, request, signal));
    if (outcome.status !== 'failed') this.#known = table;
    return outcome;
  }

  async #applyDelta(table: ForwardingTable, delta: TableDelta, signal: AbortSignal): Promise<ApplyOutcome> {
    const { programs } = this.#parts;
    const plan = this.#rules.plan(table, delta);
    const early = await this.#rules.before(plan, signal);
    if (early?.status === 'failed') return early;
    const refused = early?.status === 'partial' ? early.failed : undefined;
    const written = await programs.applyDelta(table, refused ? without(delta, refused) : delta, signal);
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
    // The wire's programs may be removed now: rules forward all traffic from outside.
    const removed = isWireUsed ? 0 : await this.#removeWire(signal);
    const writes = outcome.writes + removed + (await kernel.removeOtherVersions(signal));
    return { ...outcome, writes };
  }

  /** Removes objects of another process, and looks again while it finds some: that process may still run. */
  async #removeWire(signal: AbortSignal): Promise<number> {
    if (this.#isWireGone) return 0;
    const removed = await this.#parts.wire.remove(signal);
    this.#isWireGone = removed.length === 0;
    return removed.length;
  }

  /** Adds the rules first where programs are about to leave Services to them; the record does not say which they carry. */
  async #addRules(table: ForwardingTable, share: RulesShare, signal: AbortSignal): Promise<ApplyOutcome | undefined> {
    const found = share === 'remainder' ? await this.#parts.kernel.findMaps(signal) : undefined;
    return found !== undefined && movesToRules(found, table) ? this.#rules.add(table, signal) : undefined;
  }
}

type Refused = ReadonlyMap<ServicePortKey, Error>;

/** Programs must keep the Services that the rules refused. */
function without(delta: TableDelta, refused: Refused): TableDelta {
  return { ...delta, upserted: delta.upserted.filter(({ key }) => !refused.has(key)) };
}

/** The table with those Services as they are now. */
function withFormer(table: ForwardingTable, known: ForwardingTable | undefined, refused: Refused): ForwardingTable {
  const keys = [...refused.keys()];
  const former = keys.flatMap((key) => known?.services.get(key) ?? []);
  return { ...table, services: sorted(table.services).with(former, keys) };
}

/** Whether the maps have a frontend that the table leaves to rules. Looks up those with source ranges only. */
function movesToRules(found: MapSet, table: ForwardingTable): boolean {
  const reader = new MapReader(found);
  for (const service of table.services.values()) {
    const { protocol, frontends } = service;
    if (protocol === 'SCTP') continue; // programs never had it
    for (const frontend of frontends) {
      if (!isLeftToRules(service, frontend)) continue;
      const entry = reader.frontend(keyOf(frontend, protocol));
      if (entry !== undefined && (entry.actions & frontendFlags.socketsPass) === 0) return true;
    }
  }
  return false;
}
