import { describe, expect, test } from 'vitest';
import { chainName, type ClassChain, parseChainName } from '../render/class-chains.ts';
import { ClassPool } from './service-elements.ts';

const affinity = (slots: number, timeoutSeconds: number): ClassChain => ({ kind: 'affinity', slots, timeoutSeconds });

describe('chain names', () => {
  test.each<[string, ClassChain]>([
    ['lb4-3', { kind: 'lb', slots: 3 }],
    ['aff4-3-10800', affinity(3, 10_800)],
  ])('%s', (name, chain) => {
    expect([chainName(chain, '4'), parseChainName(name, '4')]).toEqual([name, chain]);
  });

  test.each(['lb6-3', 'aff6-3-10800', 'lb4-', 'lb4-3-4', 'aff4-3', 'services', 'xlb4-3'])(
    '%s is no chain of IPv4',
    (name) => {
      expect(parseChainName(name, '4')).toBeUndefined();
    },
  );
});

describe('ClassPool', () => {
  test('load-balancing classes are their number of slots, or fixed', () => {
    const pool = new ClassPool('4');
    expect([1, 300, 1024, 4096, 65_536].map((slots) => pool.classOf({ kind: 'lb', slots }))).toEqual([
      1, 300, 1024, 0x7f0, 0x7f4,
    ]);
  });

  test('affinity classes are numbered as they come, and keep their number', () => {
    const pool = new ClassPool('4');
    const numbers = [affinity(2, 60), affinity(3, 60), affinity(2, 90), affinity(3, 60)].map((one) =>
      pool.classOf(one),
    );
    expect(numbers).toEqual([0x800, 0x801, 0x802, 0x801]);
    expect(pool.missing(0x802)?.chain).toEqual(affinity(2, 90));
  });

  test('takes over the numbers the kernel has, and continues above them', () => {
    const pool = new ClassPool('4');
    pool.classOf(affinity(9, 9));
    pool.reset(
      new Map([
        [1, 'lb4-1'],
        [0x805, 'aff4-3-60'],
      ]),
    );
    expect([pool.classOf(affinity(3, 60)), pool.classOf(affinity(9, 9))]).toEqual([0x805, 0x806]);
    expect([pool.missing(1), pool.missing(0x805)]).toEqual([undefined, undefined]);
    expect(pool.missing(0x806)).toEqual({ kind: 'class', suffix: '4', handleClass: 0x806, chain: affinity(9, 9) });
  });

  test('preloaded classes are never missing, even if a list lacks them', () => {
    const pool = new ClassPool('4');
    const missing = (): readonly unknown[] => [1, 64, 0x7f0, 65].map((handleClass) => pool.missing(handleClass)?.chain);
    const none = [undefined, undefined, undefined, { kind: 'lb', slots: 65 }];
    expect(missing()).toEqual(none);
    pool.reset(new Map([[2, 'lb4-2']]));
    expect(missing()).toEqual(none);
  });

  test('a class is missing until it was added', () => {
    const pool = new ClassPool('6');
    expect(pool.missing(300)).toEqual({
      kind: 'class',
      suffix: '6',
      handleClass: 300,
      chain: { kind: 'lb', slots: 300 },
    });
    pool.markAdded(300);
    expect(pool.missing(300)).toBeUndefined();
  });

  test.each([0, 0x401, 0x7ef, 0x900])('class %i has no chain to be made', (handleClass) => {
    expect(new ClassPool('4').missing(handleClass)).toBeUndefined();
  });

  test('says so when all are taken', () => {
    const pool = new ClassPool('4');
    for (let slots = 1; slots <= 0x800; slots++) pool.classOf(affinity(slots, 60));
    expect(pool.classOf(affinity(0x800, 60))).toBe(0xfff);
    expect(() => pool.classOf(affinity(1, 61))).toThrow('0x800 to 0xfff are all taken');
  });
});
