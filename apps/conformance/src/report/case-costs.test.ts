import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { aCase } from '../testing/report-builders.ts';
import { CaseCosts } from './progress-view.ts';

const run = { proxy: 'nftables', cell: 'dual', round: 1 } as const;

/** Events by lane, second by second: `+id` starts, `-id` ends. */
function costsAfter(ids: readonly string[], told: readonly (readonly [number, string, string])[]): CaseCosts {
  const costs = new CaseCosts();
  costs.add({ kind: 'runStarted', run, caseIds: ids }, millis(0));
  for (const [second, lane, what] of told) {
    const id = what.slice(1);
    const now = millis(second * 1000);
    if (what.startsWith('+')) costs.add({ kind: 'caseStarted', run, lane, id }, now);
    else costs.add({ kind: 'caseEnded', run, lane, result: aCase({ id }) }, now);
  }
  return costs;
}

test.each<{ when: string; ids: string[]; told: [number, string, string][]; now: number; left: number | undefined }>([
  { when: 'nothing has started', ids: ['m/1'], told: [], now: 5, left: undefined },
  {
    when: 'one of three took 4 s, long after the lab was built',
    ids: ['m/1', 'm/2', 'm/3'],
    told: [
      [60, 'a', '+m/1'],
      [64, 'a', '-m/1'],
    ],
    now: 64,
    left: 8,
  },
  {
    when: 'the second has gone on for 3 s',
    ids: ['m/1', 'm/2', 'm/3'],
    told: [
      [60, 'a', '+m/1'],
      [64, 'a', '-m/1'],
      [64, 'a', '+m/2'],
    ],
    now: 67,
    left: 5,
  },
  {
    when: 'a batch of two took 8 s',
    ids: ['m/1', 'm/2', 'm/3'],
    told: [
      [0, 'a', '+m/1'],
      [0, 'a', '+m/2'],
      [8, 'a', '-m/1'],
      [8, 'a', '-m/2'],
    ],
    now: 8,
    left: 4,
  },
  {
    when: 'only a batch is going on',
    ids: ['m/1', 'm/2', 'm/3', 'm/4'],
    told: [
      [0, 'a', '+m/1'],
      [0, 'a', '+m/2'],
    ],
    now: 4,
    left: undefined,
  },
  {
    when: 'two lanes share what is left',
    ids: ['m/1', 'm/2', 'm/3', 'm/4'],
    told: [
      [0, 'a', '+m/1'],
      [0, 'b', '+m/2'],
      [4, 'a', '-m/1'],
      [4, 'b', '-m/2'],
    ],
    now: 4,
    left: 4,
  },
  {
    when: 'another kind is slower',
    ids: ['m/1', 'r/1', 'r/2', 'm/2'],
    told: [
      [0, 'a', '+m/1'],
      [1, 'a', '-m/1'],
      [1, 'a', '+r/1'],
      [31, 'a', '-r/1'],
    ],
    now: 31,
    left: 31,
  },
  {
    when: 'of another kind nothing is known',
    ids: ['m/1', 'r/1'],
    told: [
      [0, 'a', '+m/1'],
      [2, 'a', '-m/1'],
    ],
    now: 2,
    left: 2,
  },
  {
    when: 'a skip says nothing of how long cases take',
    ids: ['m/1', 'm/2'],
    told: [[1, 'a', '-m/1']],
    now: 9,
    left: undefined,
  },
  {
    when: 'a case takes longer than others did',
    ids: ['m/1', 'm/2'],
    told: [
      [0, 'a', '+m/1'],
      [1, 'a', '-m/1'],
      [1, 'a', '+m/2'],
    ],
    now: 9,
    left: 0,
  },
  {
    when: 'all have ended',
    ids: ['m/1'],
    told: [
      [0, 'a', '+m/1'],
      [1, 'a', '-m/1'],
    ],
    now: 9,
    left: 0,
  },
  {
    when: 'one of thirty has ended',
    ids: Array.from({ length: 30 }, (_, index) => `m/${index}`),
    told: [
      [0, 'a', '+m/1'],
      [4, 'a', '-m/1'],
    ],
    now: 4,
    left: undefined,
  },
  {
    when: 'a batch of another kind has gone on for 8 s',
    ids: ['m/1', 'r/1', 'r/2'],
    told: [
      [0, 'a', '+m/1'],
      [1, 'a', '-m/1'],
      [1, 'a', '+r/1'],
      [1, 'a', '+r/2'],
    ],
    now: 9,
    left: 8,
  },
])('when $when, $left s are left', ({ ids, told, now, left }) => {
  const found = costsAfter(ids, told).left(millis(now * 1000));
  expect(found === undefined ? undefined : found / 1000).toBe(left);
});
