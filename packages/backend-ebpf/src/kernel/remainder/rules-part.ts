import { type ApplyOutcome, type ApplyRequest, type DataplaneBackend, type Drift } from '@switchyard/core/engine';
import { type ForwardingTable, InvariantError, type TableDelta } from '@switchyard/core';
import { ruleServicesOf } from '../../render/remainder/left-to-rules.ts';
import {
  type AppliedTable,
  planRules,
  type RulesPlan,
  type RulesStep,
  wholeRules,
} from '../../render/remainder/plan-rules.ts';

/** Share of a table that rules carry: all of it, or the remainder that programs leave to them. */
export type RulesShare = 'all' | 'remainder';

/** The rules beside programs. A change has two steps, and programs change between them: see `planRules`. */
export class RulesPart {
  readonly #rules: DataplaneBackend;
  #share: RulesShare = 'all';
  #applied: AppliedTable | undefined;
  /** Another process may have changed rules since they were read. */
  #hasDrifted = true;

  constructor(rules: DataplaneBackend) {
    this.#rules = rules;
  }

  /** Whether the rules of a share are recorded. */
  knows(share: RulesShare): boolean {
    return this.#applied !== undefined && this.#share === share;
  }

  /** Plans the change from the recorded rules to those of a table. `knows` must be true. */
  plan(table: ForwardingTable, delta: TableDelta): RulesPlan {
    if (this.#applied === undefined) throw new InvariantError('rules cannot change before they were applied in full');
    if (this.#share === 'remainder') return planRules(this.#applied, table, delta);
    return { before: undefined, after: { table, services: noServices, delta } };
  }

  /** First step: adds rules for traffic that programs are about to leave to them. Undefined if there is none. */
  async before({ before }: RulesPlan, signal: AbortSignal): Promise<ApplyOutcome | undefined> {
    return before && this.#step(before, signal);
  }

  /** Second step. Undefined if there is nothing to change. */
  async after({ after }: RulesPlan, table: ForwardingTable, signal: AbortSignal): Promise<ApplyOutcome | undefined> {
    const { upserted, removed, settingsChanged } = after.delta;
    const isEmpty = upserted.length === 0 && removed.length === 0 && !settingsChanged;
    const outcome = isEmpty ? undefined : await this.#step(after, signal);
    if (outcome?.status === 'failed') return outcome;
    // A service whose removal was refused is removed again with the next delta that names it.
    const kept = after.delta.removed.filter((key) => outcome?.status === 'partial' && outcome.failed.has(key));
    const held = kept.flatMap((key) => this.#applied?.services.get(key) ?? []);
    this.#applied = { table, services: held.length === 0 ? after.services : after.services.with(held, []) };
    return outcome;
  }

  /** Whether `applyFull` would find the rules unchanged. */
  isRight(scope: ApplyRequest['scope'], share: RulesShare): boolean {
    return scope.kind === 'full' && scope.after === 'drift' && !this.#hasDrifted && this.knows(share);
  }

  /** Adds the rules for the remainder of a table and keeps all others; the next `applyFull` removes stale ones. */
  async add(table: ForwardingTable, signal: AbortSignal): Promise<ApplyOutcome> {
    this.#applied = undefined;
    return this.#rules.apply({ table: wholeRules(table).table, scope: { kind: 'full', stale: 'keep' } }, signal);
  }

  /** Writes the rules for a share of a table and reads the kernel back first. */
  async applyFull({ table, scope }: ApplyRequest, share: RulesShare, signal: AbortSignal): Promise<ApplyOutcome> {
    this.#applied = undefined;
    this.#hasDrifted = false;
    this.#share = share;
    const left = share === 'all' ? { table, services: noServices } : wholeRules(table);
    const outcome = await this.#rules.apply({ table: left.table, scope }, signal);
    if (outcome.status === 'failed') this.#hasDrifted = true;
    else this.#applied = { table, services: left.services };
    return outcome;
  }

  /** As `BackendObservers.drift`. */
  async watchDrift(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    this.#hasDrifted = true; // changes before this moment were not observed
    await this.#rules.observers.drift?.((drift) => {
      this.#hasDrifted = true;
      report(drift);
    }, signal);
  }

  async #step({ table, delta }: RulesStep, signal: AbortSignal): Promise<ApplyOutcome> {
    return this.#rules.apply({ table, scope: { kind: 'delta', delta } }, signal);
  }
}

/** Where rules carry all services, nothing moves between programs and rules. */
const noServices = ruleServicesOf([]);
