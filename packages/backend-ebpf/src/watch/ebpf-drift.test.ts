import { type Clock, HostError, millis } from '@switchyard/core';
import { type Drift } from '@switchyard/core/engine';
import { ManualClock, settle } from '@switchyard/core/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EbpfDrift, type Fault } from './ebpf-drift.ts';

const unpinned: Fault = { kind: 'map', text: 'map services unpinned or replaced' };
const detached: Fault = { kind: 'program', text: 'connect4 detached' };

function bench() {
  const clock = new ManualClock();
  const state = {
    faults: [] as readonly Fault[],
    content: [[], []] as readonly (readonly string[])[],
    looks: 0,
    rounds: 0,
    whole: 0,
    fingerprint: undefined as bigint | undefined,
    /** Runs during a look. */
    during: async (): Promise<void> => undefined,
  };
  const drift = new EbpfDrift({
    clock,
    fingerprint: (extent) => {
      if (extent === 'whole') state.whole++;
      return state.fingerprint;
    },
    looks: [
      async () => {
        state.looks++;
        const { faults } = state;
        await state.during();
        return faults;
      },
    ],
    content: () => {
      state.rounds++;
      return state.content;
    },
  });
  const stop = new AbortController();
  const reports: Drift[] = [];
  const ended = drift.watch((one) => reports.push(one), stop.signal);
  ended.catch(() => undefined);
  onTestFinished(() => stop.abort(new Error('stop')));
  /** An apply that heals everything. */
  const heal = async (): Promise<void> => {
    using _ = drift.hold();
    state.faults = [];
    state.content = [[], []];
    await settle();
  };
  return { clock, state, drift, reports, heal, stop, ended };
}

describe('EbpfDrift', () => {
  test('looks every 800 ms, and goes through the maps at least once', async () => {
    const { clock, state, reports } = bench();
    await clock.advance(3000);
    const before = { ...state };
    await clock.advance(4000);
    expect(state.looks - before.looks).toBe(5);
    expect(state.rounds - before.rounds).toBeGreaterThanOrEqual(2);
    expect(reports).toEqual([]);
  });

  test('with an unchanged fingerprint it looks three times, and again after 30 s', async () => {
    const { clock, state } = bench();
    state.fingerprint = 7n;
    await clock.advance(10_000);
    expect([state.looks, state.rounds, state.whole]).toEqual([3, 3, 2]);
    await clock.advance(30_000);
    expect([state.looks, state.rounds, state.whole]).toEqual([4, 4, 3]);
  });

  test.each<[string, number, (state: ReturnType<typeof bench>['state'], drift: EbpfDrift) => void]>([
    ['a changed fingerprint', 2, (state) => (state.fingerprint = 8n)],
    ['an apply', 3, (_, drift) => drift.hold()[Symbol.dispose]()],
  ])('after %s it looks %i times', async (_, looks, change) => {
    const { clock, state, drift } = bench();
    state.fingerprint = 7n;
    await clock.advance(10_000);
    change(state, drift);
    await clock.advance(10_000);
    expect(state.looks).toBe(3 + looks);
  });

  test('while there is no fingerprint, or drift is not healed, it goes on looking', async () => {
    const { clock, state, reports } = bench();
    await clock.advance(8000);
    expect(state.looks).toBeGreaterThanOrEqual(9);
    state.fingerprint = 7n;
    state.faults = [detached];
    await clock.advance(20_000);
    expect(reports.length).toBeGreaterThanOrEqual(3);
  });

  test.each<[string, Partial<ReturnType<typeof bench>['state']>, Pick<Drift, 'kind' | 'changes'>]>([
    ['a link', { faults: [detached] }, { kind: 'program', changes: [detached.text] }],
    [
      'several things: the worst kind',
      { faults: [unpinned, detached] },
      { kind: 'program', changes: [detached.text, unpinned.text] },
    ],
    ['the content of a map', { content: [[], ['slot 7 edited']] }, { kind: 'element', changes: ['slot 7 edited'] }],
  ])('within a second %s is reported, once until it is healed, and again when it is not', async (_, damage, told) => {
    const { clock, state, reports, heal } = bench();
    await clock.advance(2000);
    Object.assign(state, damage);
    await clock.advance(900);
    expect(reports).toEqual([{ ...told, process: undefined }]);
    await clock.advance(4000);
    expect(reports).toHaveLength(1);
    await clock.advance(3000);
    expect(reports).toHaveLength(2);
    await heal();
    await clock.advance(10_000);
    expect(reports).toHaveLength(2);
  });

  test('drift that returns after it was healed is reported again', async () => {
    const { clock, state, reports, heal } = bench();
    state.faults = [detached];
    await clock.advance(900);
    await heal();
    state.faults = [unpinned];
    await clock.advance(900);
    expect(reports.map(({ kind }) => kind)).toEqual(['program', 'map']);
  });

  test('no look runs during an apply', async () => {
    const { clock, state, reports, drift } = bench();
    await clock.advance(900);
    const held = drift.hold();
    state.faults = [detached];
    state.content = [['slot 7 edited']];
    await clock.advance(100); // a look that is due ends
    const { looks } = state;
    await clock.advance(5000);
    expect(state.looks).toBe(looks);
    expect(reports).toEqual([]);
    held[Symbol.dispose]();
    await clock.advance(900);
    expect(reports).toHaveLength(1);
  });

  test('what was seen while we began to write is not told', async () => {
    const { clock, state, reports, drift } = bench();
    await clock.advance(900);
    state.faults = [detached];
    state.during = async () => {
      using _ = drift.hold();
      state.faults = [];
      state.during = async () => undefined;
    };
    await clock.advance(1000);
    expect(reports).toEqual([]);
  });

  test.each<[string, (round: number) => number, readonly number[]]>([
    ['that cost much begin less often: 40 ms each are 2 % of 2 s, so each third look has one', () => 4, [8, 9]],
    ['do not when only others made most of them long', (round) => (round % 4 === 0 ? 1 : 4), [23, 24, 25]],
  ])('rounds %s', async (_, costOfPart, expected) => {
    const time = new ManualClock();
    const state = { rounds: 0, spent: 0 };
    const clock: Clock = {
      now: () => time.now(),
      monotonic: () => millis(time.monotonic() + state.spent),
      sleep: (duration, signal) => time.sleep(duration, signal),
    };
    const drift = new EbpfDrift({
      clock,
      fingerprint: () => undefined,
      looks: [],
      *content() {
        state.rounds++;
        for (let part = 0; part < 10; part++) {
          state.spent += costOfPart(state.rounds);
          yield [];
        }
      },
    });
    const stop = new AbortController();
    onTestFinished(() => stop.abort(new Error('stop')));
    drift.watch(() => undefined, stop.signal).catch(() => undefined);
    await time.advance(10_000);
    const before = state.rounds;
    await time.advance(20_000);
    expect(expected).toContain(state.rounds - before);
  });

  test('a look that fails ends the watch with its error; an abort does not', async () => {
    const failed = bench();
    failed.state.during = () => Promise.reject(new HostError('test', 'no permission'));
    await settle();
    await failed.clock.advance(500);
    await expect(failed.ended).rejects.toThrow('no permission');
    const aborted = bench();
    await aborted.clock.advance(500);
    aborted.stop.abort(new Error('stop'));
    await expect(aborted.ended).resolves.toBeUndefined();
    expect(aborted.clock.sleeping).toBe(0);
  });
});
