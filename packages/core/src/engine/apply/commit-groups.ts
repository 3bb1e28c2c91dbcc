import { DataplaneError, HostError, isExpected } from '../../base/errors.ts';
import type { ApplyOutcome } from '../dataplane-backend.ts';
import type { ServicePortKey } from '../../model/records/keys.ts';
import { millis } from '../../base/time.ts';
import { type ChangeGroup, type GroupWriter, KernelDiffersError, type PlannedGroup } from './driver.ts';

/** The result for all groups. */
export interface CommitResult {
  /** Changes that the kernel accepted. */
  writes: number;
  /** Services that the kernel refused or that cannot be rendered, each with its first error. */
  readonly failed: Map<ServicePortKey, Error>;
  /** Groups that the kernel refused; excludes services that cannot be rendered. */
  refused: number;
  /** Stale objects that could not be removed. */
  readonly unremoved: Error[];
}

/** An empty result. */
export function noResult(): CommitResult {
  return { writes: 0, failed: new Map(), refused: 0, unremoved: [] };
}

/** The result as the outcome of an apply. */
export function outcomeOf({ writes: count, failed, unremoved: [unremoved] }: CommitResult): ApplyOutcome {
  const writes = unremoved === undefined ? { writes: count } : { writes: count, unremoved };
  return failed.size > 0 ? { status: 'partial', ...writes, failed } : { status: 'applied', ...writes };
}

/** Attempts of a write that another process blocks, and the wait between two. */
const maxAttempts = 4;
const attemptGap = millis(50);

/**
 * Writes groups in their order, in as few writes as the writer's limit allows. After a refusal it finds the refused
 * group, by the report of the kernel or by halving, and writes all others. Groups are taken from the iterable when
 * their turn comes. Fills `result` as it proceeds. Rejects when settings are refused, and with errors of the writer.
 */
export async function commitGroups<Group extends ChangeGroup<Change>, Change>(
  groups: Iterable<Group>,
  { writer, result }: { readonly writer: GroupWriter<Group, Change>; readonly result: CommitResult },
  signal: AbortSignal,
): Promise<void> {
  const commit = new Commit(writer, result);
  let isFirst = true;
  for (const part of commit.parts(groups)) {
    if (!isFirst && writer.isBlocking) await writer.clock.sleep(millis(0), signal);
    isFirst = false;
    await commit.write(part, signal);
  }
}

class Commit<Group extends ChangeGroup<Change>, Change> {
  readonly #writer: GroupWriter<Group, Change>;
  readonly #result: CommitResult;
  #budget: number;

  constructor(writer: GroupWriter<Group, Change>, result: CommitResult) {
    this.#writer = writer;
    this.#result = result;
    this.#budget = writer.refusalBudget;
  }

  /** Plans groups and packs them into writes. */
  *parts(groups: Iterable<Group>): Generator<readonly PlannedGroup<Group, Change>[]> {
    let part: PlannedGroup<Group, Change>[] = [];
    let weight = 0;
    for (const group of groups) {
      const planned = this.#plan(group);
      if (planned === undefined) continue;
      const own = this.#writer.weigh(planned.changes);
      const together = part.at(-1)?.group.together;
      const isBound = together !== undefined && together === group.together;
      if (part.length > 0 && !isBound && weight + own > this.#writer.limit) {
        yield part;
        [part, weight] = [[], 0];
      }
      part.push(planned);
      weight += own;
    }
    if (part.length > 0) yield part;
  }

  async write(planned: readonly PlannedGroup<Group, Change>[], signal: AbortSignal): Promise<void> {
    const writer = this.#writer;
    let part = planned;
    for (let attempts = 1; part.length > 0;) {
      const written = await writer.write(part, signal);
      this.#result.writes += written.writes;
      if (written.status === 'written') {
        for (const { group } of part) group.settle(true);
        return;
      }
      const { error, isTransient = false } = written;
      if (isTransient) {
        if (attempts === maxAttempts) throw error;
        attempts++;
        await writer.clock.sleep(attemptGap, signal);
        part = this.#again(part);
        continue;
      }
      this.#budget--;
      if (this.#budget <= 0) {
        for (const { group } of part) this.#refuse(group, error);
        return;
      }
      const refused = part.length === 1 ? part[0] : part.find(({ group }) => group === written.group);
      if (refused !== undefined) part = await this.#withoutRefused(part, { refused, error }, signal);
      else {
        const middle = Math.ceil(part.length / 2);
        await this.write(this.#again(part.slice(0, middle)), signal);
        part = this.#again(part.slice(middle));
      }
    }
  }

  /** Returns the groups to write next: all of them once more, or the rest after the refused group has failed. */
  async #withoutRefused(
    part: readonly PlannedGroup<Group, Change>[],
    { refused, error }: { readonly refused: PlannedGroup<Group, Change>; readonly error: Error },
    signal: AbortSignal,
  ): Promise<readonly PlannedGroup<Group, Change>[]> {
    const writer = this.#writer;
    if ((await writer.reconsider?.(refused, error, signal)) === true) return this.#again(part);
    this.#refuse(refused.group, error);
    const instead = writer.insteadOf?.(refused.group);
    return this.#again(
      part.flatMap((one) => {
        if (one !== refused) return one;
        return instead === undefined ? [] : (this.#plan(instead) ?? []);
      }),
    );
  }

  /** Undefined when there is nothing to write: the group is settled, or has failed. */
  #plan(group: Group): PlannedGroup<Group, Change> | undefined {
    let changes: readonly Change[];
    try {
      changes = group.plan();
    } catch (error) {
      if (group.owner.kind !== 'services' || !isExpected(error) || error instanceof KernelDiffersError) throw error;
      this.#fail(group, error);
      return undefined;
    }
    if (changes.length > 0) return { group, changes };
    group.settle(true);
    return undefined;
  }

  #again(part: readonly PlannedGroup<Group, Change>[]): readonly PlannedGroup<Group, Change>[] {
    if (this.#writer.atomicity === 'transaction') return part;
    return part.flatMap(({ group }) => this.#plan(group) ?? []);
  }

  #refuse(group: Group, error: Error): void {
    this.#result.refused++;
    this.#fail(group, error);
  }

  #fail(group: Group, error: Error): void {
    const { owner } = group;
    const { failed, unremoved } = this.#result;
    group.settle(false);
    if (owner.kind === 'services') {
      for (const key of owner.keys) failed.set(key, failed.get(key) ?? error);
    } else if (owner.kind === 'stale') {
      unremoved.push(
        new HostError('apply.unremoved', `cannot remove ${owner.what}: ${error.message}`, { cause: error }),
      );
    } else
      throw error instanceof DataplaneError ? error : new HostError('apply.refused', error.message, { cause: error });
  }
}
