import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StepClock } from '../../testing/index.ts';
import { quarantineTime } from './quarantine.ts';
import { SlotPool } from './slot-pool.ts';

const capacity = 4096;

describe('SlotPool', () => {
  test('takes the smallest fit, and what was never shown to anybody again at once', () => {
    const pool = new SlotPool(new StepClock(), capacity);
    expect([pool.allocate(3), pool.allocate(4), pool.allocate(1), pool.allocate(2)]).toEqual([0, 4, 8, 10]);
    pool.free(4, 4);
    expect(pool.allocate(3)).toBe(4);
  });

  test('allocates a range again after its quarantine, not before', () => {
    const clock = new StepClock();
    const pool = new SlotPool(clock, 4);
    expect(pool.allocate(4)).toBe(0);
    pool.retire(0, 4);
    clock.step(quarantineTime - 1);
    expect(pool.allocate(1)).toBe(-1);
    clock.step(1);
    expect(pool.allocate(4)).toBe(0);
  });

  test('joins halves again, so that what was cut into pieces is whole when all are back', () => {
    const clock = new StepClock();
    const pool = new SlotPool(clock, capacity);
    for (let base = 0; base < capacity; base++) expect(pool.allocate(1)).toBe(base);
    expect(pool.allocate(1)).toBe(-1);
    for (let base = 0; base < capacity; base++) pool.retire(base, 1);
    clock.step(quarantineTime);
    expect(pool.allocate(capacity)).toBe(0);
  });

  test.each<[string, number, number]>([
    ['that begins where none can', 6, 4],
    ['that ends beyond the map', 4094, 4],
    ['that overlaps another', 8, 8],
  ])('does not believe a range %s', (_, base, count) => {
    const pool = new SlotPool(new StepClock(), capacity);
    expect(pool.claim(12, 3)).toBe(true);
    expect(pool.claim(base, count)).toBe(false);
    expect(pool.claim(16, 5)).toBe(true);
  });

  test('has more room when the map has grown, also when that is no power of two', () => {
    const pool = new SlotPool(new StepClock(), 8);
    expect(pool.allocate(8)).toBe(0);
    pool.grow(44);
    expect([pool.allocate(32), pool.allocate(4), pool.allocate(8), pool.allocate(4)]).toEqual([-1, 40, 8, 32]);
    expect(pool.available).toBe(44 - 24);
  });
});

type Action =
  | { readonly kind: 'allocate'; readonly count: number }
  | { readonly kind: 'retire' | 'pause'; readonly at: number };

const anyAction: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('allocate' as const), count: fc.integer({ min: 1, max: 200 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('retire' as const), at: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pause' as const), at: fc.integer({ min: 1, max: 1500 }) }) },
);

test('in random order, ranges never overlap, none in quarantine is allocated, and none is lost', () => {
  fc.assert(
    fc.property(fc.array(anyAction, { maxLength: 120 }), (actions) => {
      const clock = new StepClock();
      const pool = new SlotPool(clock, capacity);
      const live: { readonly base: number; readonly count: number }[] = [];
      const blocked: { readonly base: number; readonly count: number; readonly until: number }[] = [];
      for (const action of actions) {
        if (action.kind === 'pause') clock.step(action.at);
        else if (action.kind === 'allocate') {
          const base = pool.allocate(action.count);
          const waiting = blocked.filter(({ until }) => until > clock.monotonic());
          if (base < 0) continue;
          for (const other of [...live, ...waiting]) {
            const isApart = base + action.count <= other.base || other.base + other.count <= base;
            expect(isApart).toBe(true);
          }
          expect(base + action.count).toBeLessThanOrEqual(capacity);
          live.push({ base, count: action.count });
        } else if (live.length > 0) {
          const [range] = live.splice(action.at % live.length, 1);
          pool.retire(range!.base, range!.count);
          blocked.push({ ...range!, until: clock.monotonic() + quarantineTime });
        }
      }
      const recovered = new SlotPool(clock, capacity);
      for (const { base, count } of live) expect(recovered.claim(base, count)).toBe(true);
      recovered.retireBelow(pool.end);
      clock.step(quarantineTime);
      expect(recovered.available).toBe(pool.available);
      for (const { base, count } of live) pool.retire(base, count);
      clock.step(quarantineTime);
      expect(pool.available).toBe(capacity);
      expect(pool.allocate(capacity)).toBe(0);
    }),
    { numRuns: 100 },
  );
});

test('sets that grow and shrink for hours need no more room than at their largest and what waits', () => {
  const clock = new StepClock();
  const pool = new SlotPool(clock, 65_536);
  let state = 1;
  const next = (): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) >>> 16;
  const sets = Array.from({ length: 200 }, () => ({ base: pool.allocate(10), count: 10 }));
  for (let round = 0; round < 20_000; round++) {
    const at = next() % sets.length;
    const { base, count } = sets[at]!;
    const changed = (next() % 64) + 1;
    sets[at] = { base: pool.allocate(changed), count: changed };
    expect(sets[at]!.base).toBeGreaterThanOrEqual(0);
    pool.retire(base, count);
    clock.step(10);
  }
  // 200 sets of at most 64, and a hundred that wait: 300 x 64 = 19,200.
  expect(pool.end).toBeLessThanOrEqual(32_768);
});
