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

/** What rules carry: all of the table, or only what programs leave to them. */
export type RulesShare = 'all' | 'remainder';

/**
 * The rules beside programs, written by the nftables backend as a library. A change has two halves, with that of the programs
 * between them: see `planRules`.
 */
export class RulesPart {
  readonly #rules: DataplaneBackend;
  #share: RulesShare = 'all';
  #applied: AppliedTable | undefined;
  /** Somebody changed rules since they were read. */
  #hasDrifted = true;

  constructor(rules: DataplaneBackend) {
    this.#rules = rules;
  }

  /** Whether it is known what the rules are for a share. */
  knows(share: RulesShare): boolean {
    return this.#applied !== undefined && this.#share === share;
  }

  /** What leads from the rules as they are to those of a table. They must be known. */
  plan(table: ForwardingTable, delta: TableDelta): RulesPlan {
    if (this.#applied === undefined) throw new InvariantError('rules are to change before it is known what they are');
    if (this.#share === 'remainder') return planRules(this.#applied, table, delta);
    return { before: undefined, after: { table, services: noServices, delta } };
  }

  /** The first half: what programs are about to leave to rules. Undefined where that is nothing. */
  async before({ before }: RulesPlan, signal: AbortSignal): Promise<ApplyOutcome | undefined> {
    return before && this.#step(before, signal);
  }

  /** The second half. Undefined where there is nothing to do. */
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

  /** Whether `applyFull` would only find what it left. */
  isRight(scope: ApplyRequest['scope'], share: RulesShare): boolean {
    return scope.kind === 'full' && scope.after === 'drift' && !this.#hasDrifted && this.knows(share);
  }

  /** All that programs leave to rules of a table, beside whatever rules are there: these go with the next `applyFull`. */
  async add(table: ForwardingTable, signal: AbortSignal): Promise<ApplyOutcome> {
    this.#applied = undefined;
    return this.#rules.apply({ table: wholeRules(table).table, scope: { kind: 'full', stale: 'keep' } }, signal);
  }

  /** All that rules carry of a table, whatever is in the kernel. */
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
    this.#hasDrifted = true; // nobody looked so far
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
