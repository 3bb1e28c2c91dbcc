import { type Drift } from '@switchyard/core/engine';
import { HostError, millis, noopLogger } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { ChainDifference } from '../kernel/compare-states.ts';
import { watchLegacy } from './watch-legacy.ts';

type Found = readonly ChainDifference[] | undefined | Error;

const svc = (letter: string): ChainDifference => ({ table: 'nat', chain: `KUBE-SVC-${letter}`, what: 'changed' });

/** Watches for a time with a period of a second; each look finds the next of these, and takes so long. */
async function watch(found: readonly Found[], { cost = 0, duration = 10_000 } = {}) {
  const clock = new ManualClock();
  const controller = new AbortController();
  const reports: Drift[] = [];
  const foreign: string[] = [];
  let looks = 0;
  const watching = watchLegacy(
    {
      ipFamily: 'IPv4',
      clock,
      logger: noopLogger,
      period: millis(1000),
      look: {
        compare: async (signal) => {
          const result = found[looks++] ?? [];
          await clock.sleep(millis(cost), signal);
          if (result instanceof Error) throw result;
          return result;
        },
      },
      foreign: {
        noteChain: ({ table, name }) => void foreign.push(`${table} ${name}`),
        noteTable: (table) => void foreign.push(`all of ${table}`),
        noteAll: () => void foreign.push('all'),
      },
    },
    (drift) => reports.push(drift),
    controller.signal,
  );
  watching.catch(() => undefined);
  await clock.advance(duration);
  controller.abort(new Error('stop'));
  await watching;
  return { reports, foreign, looks, sleeping: clock.sleeping };
}

test('says which chains are not as they were left, and makes them suspect', async () => {
  const { reports, foreign } = await watch([[], [svc('A'), { ...svc('B'), what: 'missing' }]]);
  expect(foreign).toEqual(['nat KUBE-SVC-A', 'nat KUBE-SVC-B']);
  expect(reports).toEqual([
    {
      kind: 'chain',
      changes: ['chain KUBE-SVC-A changed (table ip nat)', 'chain KUBE-SVC-B missing (table ip nat)'],
      process: undefined,
    },
  ]);
});

test('lists a few chains in words, and notes all of them', async () => {
  const { reports, foreign } = await watch([[...'ABCDEFG'].map(svc)]);
  expect(foreign).toHaveLength(7);
  expect(reports[0]?.changes).toHaveLength(6);
  expect(reports[0]?.changes.at(-1)).toBe('and 2 more');
});

test('is silent when nothing can be said', async () => {
  expect(await watch([undefined, []])).toMatchObject({ reports: [], foreign: [] });
});

test('looks once a period', async () => {
  expect((await watch([])).looks).toBe(10);
});

test('looks so rarely that it takes 2 % of a core', async () => {
  expect((await watch([], { cost: 200, duration: 100_000 })).looks).toBe(10);
});

test('a stop during a look ends it', async () => {
  expect(await watch([], { cost: 20_000 })).toMatchObject({ looks: 1, sleeping: 0 });
});

test('tables that cannot be read end it with the error', async () => {
  await expect(watch([new HostError('iptables.x', 'no such table')])).rejects.toThrow('no such table');
});
