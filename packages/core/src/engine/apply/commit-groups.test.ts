import { describe, expect, test } from 'vitest';
import { HostError, InvariantError } from '../../base/errors.ts';
import { type ServicePortKey, serviceKey, servicePortKey } from '../../model/records/keys.ts';
import {
  type Atomicity,
  type ChangeGroup,
  type GroupOwner,
  type GroupWriter,
  KernelDiffersError,
  type PlannedGroup,
  type WriteResult,
} from './driver.ts';
import { commitGroups, type CommitResult, noResult, outcomeOf } from './apply-engine.ts';

const keyOf = (name: string): ServicePortKey => servicePortKey(serviceKey('shop', name), '', 'TCP');

interface GroupOptions {
  readonly size?: number;
  readonly together?: string;
  readonly owner?: GroupOwner;
  readonly error?: Error;
}

/** A group that wants `size` changes named after it; `settled` is the last result it was given. */
class Group implements ChangeGroup<string> {
  readonly name: string;
  readonly owner: GroupOwner;
  readonly together: string | undefined;
  readonly error: Error | undefined;
  wanted: number;
  settled: boolean | undefined;

  constructor(name: string, { size = 1, together, owner, error }: GroupOptions = {}) {
    this.name = name;
    this.owner = owner ?? { kind: 'services', keys: [keyOf(name)] };
    this.wanted = size;
    this.together = together;
    this.error = error;
  }

  plan(): readonly string[] {
    if (this.error !== undefined) throw this.error;
    return Array.from({ length: this.wanted }, (_, index) => `${this.name}.${index}`);
  }

  settle(isApplied: boolean): void {
    this.settled = isApplied;
  }
}

const groups = (count: number): Group[] => Array.from({ length: count }, (_, index) => new Group(`s${index}`));

/** A kernel in memory that takes each write as a whole, and refuses those with a group in `refuses`. */
class MemoryWriter implements GroupWriter<Group, string> {
  readonly atomicity: Atomicity = 'table';
  readonly isBlocking = true;
  readonly clock: GroupWriter<Group, string>['clock'] = {
    sleep: async (duration) => {
      if (duration > 0) this.sleeps++;
      else this.pauses++;
    },
  };
  readonly limit: number = 1000;
  readonly refusalBudget: number = 50;
  readonly sent: string[] = [];
  readonly reconsidered: string[] = [];
  pauses = 0;
  sleeps = 0;
  refuses: ReadonlySet<string> = new Set();
  namesGroup = false;
  /** Number of writes that another process blocks. */
  transient = 0;
  thrown: Error | undefined;
  /** Called for a refused group before it is tried again. */
  remedy: (group: Group) => boolean = () => false;
  instead: Group | undefined;

  weigh(changes: readonly string[]): number {
    return changes.length;
  }

  async write(planned: readonly PlannedGroup<Group, string>[]): Promise<WriteResult<Group>> {
    await Promise.resolve();
    if (this.thrown !== undefined) throw this.thrown;
    this.sent.push(planned.map(({ group }) => group.name).join(' '));
    const error = new HostError('test.refused', 'refused');
    if (this.transient-- > 0) return { status: 'refused', writes: 0, error, isTransient: true };
    const refused = planned.find(({ group }) => this.refuses.has(group.name));
    if (refused === undefined) return { status: 'written', writes: planned.flatMap(({ changes }) => changes).length };
    return { status: 'refused', writes: 0, error, group: this.namesGroup ? refused.group : undefined };
  }

  async reconsider({ group }: PlannedGroup<Group, string>): Promise<boolean> {
    this.reconsidered.push(group.name);
    return this.remedy(group);
  }

  insteadOf(): Group | undefined {
    return this.instead;
  }
}

async function commit(all: Iterable<Group>, writer: MemoryWriter): Promise<CommitResult> {
  const result = noResult();
  await commitGroups(all, { writer, result }, new AbortController().signal);
  return result;
}

const failedNames = ({ failed }: CommitResult): string[] =>
  [...failed.keys()].map((key) => key.slice('shop/'.length, -':/TCP'.length));

describe('commitGroups', () => {
  test('writes all groups at once and settles each', async () => {
    const [writer, all] = [new MemoryWriter(), groups(3)];
    expect(await commit(all, writer)).toEqual({ writes: 3, failed: new Map(), refused: 0, unremoved: [] });
    expect([writer.sent, all.map(({ settled }) => settled)]).toEqual([['s0 s1 s2'], [true, true, true]]);
  });

  test('settles a group without changes and writes nothing', async () => {
    const [writer, group] = [new MemoryWriter(), new Group('a', { size: 0 })];
    expect((await commit([group], writer)).writes).toBe(0);
    expect([writer.sent, group.settled]).toEqual([[], true]);
  });

  test('finds refused groups by halving where the kernel names none', async () => {
    const [writer, all] = [new MemoryWriter(), groups(8)];
    writer.refuses = new Set(['s2', 's5']);
    const result = await commit(all, writer);
    expect([failedNames(result), result.writes, result.refused]).toEqual([['s2', 's5'], 6, 2]);
    expect(all.map(({ settled }) => settled)).toEqual([true, true, false, true, true, false, true, true]);
    expect(writer.sent.length).toBeLessThanOrEqual(13);
  });

  test('fails the group that the kernel names and writes the others together', async () => {
    const [writer, all] = [new MemoryWriter(), groups(8)];
    writer.refuses = new Set(['s2', 's5']);
    writer.namesGroup = true;
    expect(failedNames(await commit(all, writer))).toEqual(['s2', 's5']);
    expect(writer.sent).toEqual(['s0 s1 s2 s3 s4 s5 s6 s7', 's0 s1 s3 s4 s5 s6 s7', 's0 s1 s3 s4 s6 s7']);
  });

  test('ends the search when the budget is used up; the rest of that write fails', async () => {
    const [writer, all] = [new MemoryWriter(), groups(300)];
    writer.refuses = new Set(all.map(({ name }) => name));
    const result = await commit(all, writer);
    expect([result.failed.size, writer.sent.length <= 100]).toEqual([300, true]);
    expect(all.every(({ settled }) => settled === false)).toBe(true);
  });

  test('repeats a write that another process is in the way of, and gives up after the fourth attempt', async () => {
    const [writer, group] = [new MemoryWriter(), new Group('a')];
    writer.transient = 3;
    expect((await commit([group], writer)).writes).toBe(1);
    expect([writer.sent.length, writer.sleeps]).toEqual([4, 3]);
    writer.transient = 4;
    await expect(commit([new Group('b')], writer)).rejects.toThrow('refused');
  });

  test('plans and writes a refused group once more when the writer finds a remedy', async () => {
    const [writer, all] = [new MemoryWriter(), groups(2)];
    writer.refuses = new Set(['s1']);
    writer.namesGroup = true;
    writer.remedy = () => {
      writer.refuses = new Set();
      return true;
    };
    expect((await commit(all, writer)).failed.size).toBe(0);
    expect([writer.sent, writer.reconsidered]).toEqual([['s0 s1', 's0 s1'], ['s1']]);
  });

  test('writes what takes the place of a failed group in its position', async () => {
    const [writer, all] = [new MemoryWriter(), groups(3)];
    writer.refuses = new Set(['s1']);
    writer.namesGroup = true;
    writer.instead = new Group('removal', { owner: { kind: 'stale', what: 'addresses of s1' } });
    expect(failedNames(await commit(all, writer))).toEqual(['s1']);
    expect(writer.sent).toEqual(['s0 s1 s2', 's0 removal s2']);
  });

  test('fails a service that cannot be rendered, and no other', async () => {
    const [writer, error] = [new MemoryWriter(), new HostError('test.large', 'too many endpoints')];
    const broken = new Group('a', { error });
    const result = await commit([broken, new Group('b')], writer);
    expect([result.failed, broken.settled, writer.sent]).toEqual([new Map([[keyOf('a'), error]]), false, ['b']]);
    expect(result.refused).toBe(0);
  });

  test.each([new InvariantError('broken promise'), new KernelDiffersError('a chain is gone')])(
    'a plan that throws %s ends the commit',
    async (error) => {
      await expect(commit([new Group('a', { error })], new MemoryWriter())).rejects.toBe(error);
    },
  );

  test('refused settings end the commit; stale objects that stay are reported', async () => {
    const writer = new MemoryWriter();
    writer.refuses = new Set(['old', 'settings']);
    writer.namesGroup = true;
    const old = new Group('old', { owner: { kind: 'stale', what: 'chain OLD' } });
    const { unremoved, failed } = await commit([old, new Group('a')], writer);
    expect([unremoved.map(({ message }) => message), failed.size]).toEqual([['cannot remove chain OLD: refused'], 0]);
    await expect(commit([new Group('settings', { owner: { kind: 'settings' } })], writer)).rejects.toThrow('refused');
  });

  test('what the writer throws is the fault of no group', async () => {
    const [writer, all] = [new MemoryWriter(), groups(2)];
    writer.thrown = new HostError('test.permission', 'Operation not permitted');
    await expect(commit(all, writer)).rejects.toBe(writer.thrown);
    expect(all.map(({ settled }) => settled)).toEqual([undefined, undefined]);
  });

  test('pauses between writes, and takes a group from the iterable when its turn comes', async () => {
    const writer = new MemoryWriter();
    const sentBefore: number[] = [];
    function* lazily(): Generator<Group> {
      for (const name of ['a', 'b', 'c']) {
        sentBefore.push(writer.sent.length);
        yield new Group(name, { size: 600 });
      }
    }
    await commit(lazily(), writer);
    expect([writer.sent, writer.pauses, sentBefore]).toEqual([['a', 'b', 'c'], 2, [0, 0, 1]]);
  });

  test.each<[string, readonly Group[], readonly string[]]>([
    ['nothing is no write', [], []],
    ['what fits is one write', [new Group('a', { size: 400 }), new Group('b', { size: 600 })], ['a b']],
    [
      'what does not fit comes next',
      [new Group('a', { size: 400 }), new Group('b', { size: 700 }), new Group('c')],
      ['a', 'b c'],
    ],
    ['a group is never split', [new Group('a', { size: 3000 }), new Group('b')], ['a', 'b']],
    [
      'groups that belong together are one write, however large',
      [...'abc'].map((name) => new Group(name, { size: 800, together: 'x' })).concat(new Group('d', { together: 'y' })),
      ['a b c', 'd'],
    ],
  ])('%s', async (_, all, sent) => {
    const writer = new MemoryWriter();
    await commit(all, writer);
    expect(writer.sent).toEqual(sent);
  });
});

test('services that failed and objects that stay are part of the outcome', () => {
  const error = new HostError('test.refused', 'refused');
  const failed = new Map([[keyOf('a'), error]]);
  expect(outcomeOf({ writes: 4, failed: new Map(), refused: 0, unremoved: [] })).toEqual({
    status: 'applied',
    writes: 4,
  });
  expect(outcomeOf({ writes: 4, failed, refused: 1, unremoved: [error] })).toEqual({
    status: 'partial',
    writes: 4,
    failed,
    unremoved: error,
  });
});
