import { type ServicePortKey, serviceKey, servicePortKey } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { type ChangeGroup, type Commit, commitGroups, packGroups } from './commit.ts';
import { NftError, type NftRefusal } from './nft-error.ts';

const key = (name: string): ServicePortKey => servicePortKey(serviceKey('shop', name), '', 'TCP');

class Group implements ChangeGroup {
  readonly owner: ChangeGroup['owner'];
  readonly changes: ChangeGroup['changes'];
  readonly bond: string | undefined;
  settled: boolean | undefined;

  constructor(name: string, size = 1, bond?: string) {
    this.owner = { kind: 'services', keys: [key(name)] };
    this.changes = Array.from({ length: size }, (_, index) => ({
      kind: 'add',
      id: `hairpin4 ${name}${index}`,
      data: '',
    }));
    this.bond = bond;
  }

  get name(): string {
    return this.owner.kind === 'services' ? String(this.owner.keys[0]).slice('shop/'.length, -':/TCP'.length) : '';
  }

  settle(isApplied: boolean): void {
    this.settled = isApplied;
  }
}

const groups = (count: number): Group[] => Array.from({ length: count }, (_, index) => new Group(`s${index}`));

/** A kernel that refuses what `isGuilty`, and what it was sent. */
class Kernel implements Commit {
  readonly limit: number = 1000;
  readonly sent: string[] = [];
  pauses = 0;
  isGuilty: (name: string) => boolean = () => false;
  names = false;
  refusal: NftRefusal = 'other';

  send(some: readonly ChangeGroup[]): Promise<void> {
    this.sent.push(some.map((group) => (group as Group).name).join(' '));
    const guilty = some.find((group) => this.isGuilty((group as Group).name));
    if (guilty === undefined) return Promise.resolve();
    const change = this.names ? guilty.changes[0] : undefined;
    return Promise.reject(new NftError('refused', { refusal: this.refusal, change }));
  }

  pause(): Promise<void> {
    this.pauses++;
    return Promise.resolve();
  }
}

describe('commitGroups', () => {
  test('writes all in one transaction and settles each', async () => {
    const [kernel, all] = [new Kernel(), groups(3)];
    expect(await commitGroups(all, kernel)).toMatchObject({ writes: 3, failed: [] });
    expect([kernel.sent, all.map(({ settled }) => settled)]).toEqual([['s0 s1 s2'], [true, true, true]]);
  });

  test('finds culprits by halving where the kernel names nobody', async () => {
    const [kernel, all] = [new Kernel(), groups(8)];
    kernel.isGuilty = (name) => name === 's2' || name === 's5';
    const { writes, failed } = await commitGroups(all, kernel);
    expect(failed.map(({ owner }) => owner)).toEqual([all[2]?.owner, all[5]?.owner]);
    expect([writes, all.map(({ settled }) => settled)]).toEqual([
      6,
      [true, true, false, true, true, false, true, true],
    ]);
    expect(kernel.sent.length).toBeLessThanOrEqual(13);
  });

  test('believes the kernel when it names the change at fault', async () => {
    const [kernel, all] = [new Kernel(), groups(8)];
    kernel.isGuilty = (name) => name === 's2' || name === 's5';
    kernel.names = true;
    const { failed } = await commitGroups(all, kernel);
    expect(failed.map(({ owner }) => owner)).toEqual([all[2]?.owner, all[5]?.owner]);
    expect(kernel.sent).toEqual(['s0 s1 s2 s3 s4 s5 s6 s7', 's0 s1 s3 s4 s5 s6 s7', 's0 s1 s3 s4 s6 s7']);
  });

  test('gives up after 200 refusals; the rest counts as failed', async () => {
    const [kernel, all] = [new Kernel(), groups(900)];
    kernel.isGuilty = () => true;
    const { failed } = await commitGroups(all, kernel);
    expect([failed.length, kernel.sent.length <= 400]).toEqual([900, true]);
    expect(all.every(({ settled }) => settled === false)).toBe(true);
  });

  test('a missing permission is nobody’s fault', async () => {
    const [kernel, all] = [new Kernel(), groups(2)];
    kernel.isGuilty = () => true;
    kernel.refusal = 'permission';
    await expect(commitGroups(all, kernel)).rejects.toThrow('refused');
    expect(all.map(({ settled }) => settled)).toEqual([undefined, undefined]);
  });

  test('lets others have their turn between transactions, and plans a group only when it is its turn', async () => {
    const kernel = new Kernel();
    const planned: number[] = [];
    function* lazily(): Generator<ChangeGroup> {
      for (const group of ['a', 'b', 'c']) {
        planned.push(kernel.sent.length);
        yield new Group(group, 600);
      }
    }
    await commitGroups(lazily(), kernel);
    expect([kernel.sent, kernel.pauses, planned]).toEqual([['a', 'b', 'c'], 2, [0, 0, 1]]);
  });
});

describe('packGroups', () => {
  const pack = (...all: readonly Group[]): string[] =>
    [...packGroups(all, 10)].map((part) => part.map((group) => (group as Group).name).join(' '));

  test.each<[string, readonly Group[], readonly string[]]>([
    ['nothing is no transaction', [], []],
    ['what fits stays together', [new Group('a', 4), new Group('b', 6)], ['a b']],
    ['what does not fit comes next', [new Group('a', 4), new Group('b', 7), new Group('c', 1)], ['a', 'b c']],
    ['a group is never split', [new Group('a', 30), new Group('b', 1)], ['a', 'b']],
    [
      'ports of one Service stay together, however many',
      [new Group('a', 8, 'x'), new Group('b', 8, 'x'), new Group('c', 8, 'x'), new Group('d', 1, 'y')],
      ['a b c', 'd'],
    ],
  ])('%s', (_, all, parts) => {
    expect(pack(...all)).toEqual(parts);
  });
});
