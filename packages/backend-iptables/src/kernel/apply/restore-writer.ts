import type { Clock } from '@switchyard/core';
import { type GroupWriter, KernelDiffersError, type PlannedGroup, type WriteResult } from '@switchyard/core/engine';
import type { TableName } from '../../render/chains.ts';
import type { IptablesClient, RestoreResult } from '../client/iptables-client.ts';
import type { ChainRef, Change } from './change.ts';
import { composeRestore, type RestoreText } from './compose.ts';
import type { EntryOwners, Group } from './entry-owners.ts';
import type { KernelState } from './kernel-state.ts';

export interface RestoreWriterOptions {
  readonly client: IptablesClient;
  readonly clock: Clock;
  readonly state: KernelState;
  readonly owners: EntryOwners;
  /** Approximate number of chains named in one restore. */
  readonly limit: number;
  readonly onWritten?: ((change: Change) => void) | undefined;
  /** Reads chains again after a refusal. True when the kernel did not hold what `state` said. */
  refresh(chains: readonly ChainRef[], signal: AbortSignal): Promise<boolean>;
}

export type RulesByTable = Record<TableName, number>;

export function noRules(): RulesByTable {
  return { nat: 0, filter: 0, mangle: 0 };
}

type Planned = PlannedGroup<Group, Change>;

/** Writes groups as one `iptables-restore --noflush`. Tables before a refused one are written; `state` follows. */
export class RestoreWriter implements GroupWriter<Group, Change> {
  readonly atomicity = 'table';
  readonly isBlocking = false; // a restore is a process
  readonly clock: Clock;
  readonly limit: number;
  readonly refusalBudget = 60;
  readonly rules: RulesByTable = noRules();
  /** Refusals that left Service chains in place: a rule of another program leads to each. */
  readonly kept: Error[] = [];
  readonly #options: RestoreWriterOptions;
  /** Groups that keep their chains, and the refusal. */
  readonly #keeping = new Map<Group, Error>();
  #writes = 0;

  constructor(options: RestoreWriterOptions) {
    this.limit = options.limit;
    this.clock = options.clock;
    this.#options = options;
  }

  /** Naming a chain costs the nft variant time that grows with the chains named before it; a rule does not. */
  weigh(changes: readonly Change[]): number {
    let weight = 0;
    for (const change of changes) weight += 'name' in change ? 1 : 0.1;
    return weight;
  }

  async write(part: readonly Planned[], signal: AbortSignal): Promise<WriteResult<Group>> {
    const text = composeRestore(this.#withoutOthers(part));
    const result = await this.#restore(text, signal);
    this.#writes = 0;
    if (result.status === 'done') {
      this.#finish(part, text);
      return { status: 'written', writes: this.#writes };
    }
    this.#noteWritten(text, result);
    const { error, isTransient, line } = result;
    const group = line === undefined ? undefined : text.ownerOf(line);
    return { status: 'refused', writes: this.#writes, error, isTransient, group };
  }

  async reconsider({ group, changes }: Planned, error: Error, signal: AbortSignal): Promise<boolean> {
    if (await this.#options.refresh(group.chains(), signal)) return true;
    const isRemoving = changes.some(({ kind }) => kind === 'remove');
    if (group.owner.kind !== 'services' || this.#keeping.has(group) || !isRemoving) return false;
    this.#keeping.set(group, error);
    group.keepsChains = true;
    return true;
  }

  insteadOf(failed: Group): Group | undefined {
    return failed.afterRefusal?.();
  }

  /** Leaves out deletions of rules that another group of the same part wants. Stale rules are planned after all other groups. */
  #withoutOthers(part: readonly Planned[]): readonly Planned[] {
    const { owners } = this.#options;
    return part.map(({ group, changes }) => {
      if (group.owner.kind === 'stale') return { group, changes };
      const isOfOther = (change: Change): boolean =>
        change.kind === 'delete' && owners.isOfOther(change, group.entryOwner);
      return { group, changes: changes.some(isOfOther) ? changes.filter((change) => !isOfOther(change)) : changes };
    });
  }

  async #restore(text: RestoreText<Group>, signal: AbortSignal): Promise<RestoreResult> {
    return text.transactions === 0 ? { status: 'done' } : this.#options.client.restore(text.pieces(), signal);
  }

  #finish(part: readonly Planned[], text: RestoreText<Group>): void {
    for (const change of text.changes()) this.#note(change);
    for (const { group } of part) {
      const why = this.#keeping.get(group);
      if (why !== undefined) this.kept.push(why);
    }
  }

  /** Transactions before the refused one are in the kernel. */
  #noteWritten(text: RestoreText<Group>, refusal: Extract<RestoreResult, { readonly status: 'refused' }>): void {
    const { line } = refusal;
    if (line !== undefined) for (const change of text.writtenBefore(line)) this.#note(change);
    else if (!refusal.isTransient || text.transactions > 1) {
      const what = 'iptables-restore ended without saying how far it came'; // another process killed it
      throw new KernelDiffersError(what, { cause: refusal.error });
    }
  }

  #note(change: Change): void {
    this.#options.state.note(change);
    this.#options.onWritten?.(change);
    if (change.kind === 'tail') return;
    this.#writes++;
    this.rules[change.table] += change.kind === 'chain' ? change.lines : 1;
  }
}
