import { type Clock, DataplaneError, HostError, millis, type ServicePortKey, UsageError } from '@switchyard/core';
import type { TableName } from '../chains.ts';
import type { IptablesClient, RestoreResult } from '../client/iptables-client.ts';
import type { Change, ChainRef } from './change.ts';
import { composeRestore, type Planned, type RestoreText } from './compose.ts';
import { damaged } from './damaged.ts';
import type { EntryOwners } from './entry-owners.ts';
import type { Group } from './group.ts';
import type { KernelState } from './kernel-state.ts';

/** How groups are written. */
export interface Commit {
  readonly client: IptablesClient;
  readonly clock: Clock;
  readonly state: KernelState;
  readonly owners: EntryOwners;
  /** Is filled while groups are written. */
  readonly result: CommitResult;
  /** Chains named in one restore, roughly; more are split into several. */
  readonly limit: number;
  /** Is told of each change that the kernel took. */
  readonly onWritten?: ((change: Change) => void) | undefined;
  /** Reads chains again after a refusal. True when the kernel did not hold what `state` said. */
  refresh(chains: readonly ChainRef[], signal: AbortSignal): Promise<boolean>;
}

/** What became of the groups so far. */
export interface CommitResult {
  /** Changes the kernel took. */
  writes: number;
  /** Rules written, by table. */
  readonly rules: Record<TableName, number>;
  readonly failed: Map<ServicePortKey, Error>;
  /** What nobody asks for and could not be removed. */
  readonly leftovers: Error[];
}

/** Nothing was written so far. */
export function noResult(): CommitResult {
  return { writes: 0, rules: { nat: 0, filter: 0, mangle: 0 }, failed: new Map(), leftovers: [] };
}

/** Refused restores after which the search for culprits ends and the rest counts as failed. */
const refusalBudget = 60;
/** Tries of one restore that others are in the way of, and the wait between two. */
const maxTries = 4;
const retryGap = millis(50);

/**
 * Writes all groups in their order, in as few restores as the limit allows. When one is refused, the group at fault is found, by
 * the line that iptables names or by halving, and all others are written. Throws `DamagedError` when it is not known any more what
 * the kernel holds, and what it refuses of the settings.
 */
export async function commitGroups(groups: Iterable<Group>, commit: Commit, signal: AbortSignal): Promise<void> {
  const writer = new CommitWriter(commit);
  let part: Planned<Group>[] = [];
  let weight = 0;
  for (const group of groups) {
    const planned = writer.plan(group);
    if (planned === undefined) continue;
    const own = weightOf(planned.changes);
    if (part.length > 0 && weight + own > commit.limit) {
      await writer.write(part, signal);
      [part, weight] = [[], 0];
    }
    part.push(planned);
    weight += own;
  }
  await writer.write(part, signal);
}

/** Naming a chain costs the nft variant time that grows with the chains named before it; a rule does not. */
function weightOf(changes: readonly Change[]): number {
  let weight = 0;
  for (const change of changes) weight += 'name' in change ? 1 : 0.1;
  return weight;
}

class CommitWriter {
  readonly #commit: Commit;
  /** Services that are written without removing chains, and why: a rule of somebody else leads to one. */
  readonly #keeping = new Map<Group, Error>();
  #budget = refusalBudget;

  constructor(commit: Commit) {
    this.#commit = commit;
  }

  /** Undefined when there is nothing to write: then the group is settled, or failed. */
  plan(group: Group): Planned<Group> | undefined {
    let changes: readonly Change[];
    try {
      changes = group.plan(this.#keeping.has(group));
    } catch (error) {
      if (group.owner.kind !== 'service' || !(error instanceof UsageError)) throw error;
      this.#fail(group, error);
      return undefined;
    }
    if (changes.length > 0) return { of: group, changes };
    group.settle(true);
    return undefined;
  }

  async write(planned: readonly Planned<Group>[], signal: AbortSignal): Promise<void> {
    let part = planned;
    for (let tries = 1; part.length > 0;) {
      const text = composeRestore(this.#withoutOthers(part));
      const result = await this.#restore(text, signal);
      if (result.status === 'done') return this.#finish(part, text);
      this.#noteWritten(text, result);
      if (result.isTransient && tries < maxTries) {
        tries++;
        await this.#commit.clock.sleep(retryGap, signal);
        part = this.#again(part);
        continue;
      }
      if (result.isTransient) throw result.error;
      this.#budget--;
      const culprit = part.length === 1 ? part[0] : this.#culprit(part, text, result.line);
      if (culprit !== undefined) {
        const isDamaged = this.#budget > 0 && (await this.#commit.refresh(culprit.of.chains(), signal));
        const isToBeTried = isDamaged || this.#keepChains(culprit, result.error);
        part = this.#again(isToBeTried ? part : this.#without(culprit, part, result.error));
      } else if (this.#budget > 0) {
        const middle = Math.ceil(part.length / 2);
        await this.write(this.#again(part.slice(0, middle)), signal);
        part = this.#again(part.slice(middle));
      } else {
        for (const { of } of part) this.#fail(of, result.error);
        return;
      }
    }
  }

  /** Fails a group. What it is to lose goes with the others all the same, in its place. */
  #without(culprit: Planned<Group>, part: readonly Planned<Group>[], error: Error): readonly Planned<Group>[] {
    this.#fail(culprit.of, error);
    const of = culprit.of.withdrawal?.();
    return part.flatMap((one) => (one === culprit ? (of === undefined ? [] : { of, changes: [] }) : one));
  }

  /** Whether a Service that was refused is worth a try without removing its chains. */
  #keepChains({ of, changes }: Planned<Group>, error: Error): boolean {
    if (of.owner.kind !== 'service' || this.#budget <= 0 || this.#keeping.has(of)) return false;
    if (!changes.some(({ kind }) => kind === 'remove')) return false;
    this.#keeping.set(of, error);
    return true;
  }

  #culprit(
    part: readonly Planned<Group>[],
    text: RestoreText<Group>,
    line: number | undefined,
  ): Planned<Group> | undefined {
    const group = line === undefined ? undefined : text.ownerOf(line);
    return group && part.find(({ of }) => of === group);
  }

  #again(part: readonly Planned<Group>[]): readonly Planned<Group>[] {
    return part.flatMap(({ of }) => this.plan(of) ?? []);
  }

  /** A rule that another group of the same part wants stays. Leftovers are planned when all wishes are known. */
  #withoutOthers(part: readonly Planned<Group>[]): readonly Planned<Group>[] {
    const { owners } = this.#commit;
    return part.map(({ of, changes }) => {
      if (of.owner.kind === 'leftovers') return { of, changes };
      const isOfOther = (change: Change): boolean => change.kind === 'delete' && owners.isOfOther(change, of.owner);
      return { of, changes: changes.some(isOfOther) ? changes.filter((change) => !isOfOther(change)) : changes };
    });
  }

  async #restore(text: RestoreText<Group>, signal: AbortSignal): Promise<RestoreResult> {
    return text.transactions === 0 ? { status: 'done' } : await this.#commit.client.restore(text.pieces(), signal);
  }

  #finish(part: readonly Planned<Group>[], text: RestoreText<Group>): void {
    for (const change of text.changes()) this.#note(change);
    for (const { of } of part) {
      of.settle(true);
      const why = this.#keeping.get(of);
      if (why !== undefined) this.#commit.result.leftovers.push(why);
    }
  }

  /** What stood in transactions before the one that was refused is in the kernel. */
  #noteWritten(text: RestoreText<Group>, refusal: Extract<RestoreResult, { readonly status: 'refused' }>): void {
    const line = refusal.line ?? refusal.commit;
    if (line !== undefined) for (const change of text.writtenBefore(line)) this.#note(change);
    else if (!refusal.isTransient || text.transactions > 1) {
      throw damaged('iptables-restore ended and did not say how far it came', refusal.error); // somebody killed it
    }
  }

  #note(change: Change): void {
    this.#commit.state.note(change);
    this.#commit.onWritten?.(change);
    if (change.kind === 'tail') return;
    this.#commit.result.writes++;
    this.#commit.result.rules[change.table] += change.kind === 'chain' ? change.lines : 1;
  }

  #fail(group: Group, error: Error): void {
    const { owner } = group;
    group.settle(false);
    const { failed, leftovers } = this.#commit.result;
    if (owner.kind === 'service') failed.set(owner.key, failed.get(owner.key) ?? error);
    else if (owner.kind === 'leftovers') {
      const message = `cannot remove ${owner.what}: ${error.message}`;
      leftovers.push(new HostError('iptables.leftover', message, { cause: error }));
    } else
      throw error instanceof DataplaneError
        ? error
        : new HostError('iptables.refused', error.message, { cause: error });
  }
}
