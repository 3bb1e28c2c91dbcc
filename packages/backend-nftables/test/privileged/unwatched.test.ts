import { type Clock, millis, noopLogger, systemClock } from '@switchyard/core';
import type { Drift } from '@switchyard/core/engine';
import { until } from '@switchyard/core/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { clusterOf } from '../../bench/cluster.ts';
import { nftablesBackend } from '../../src/index.ts';
import { createSite, type Site } from './support.ts';

let site: Site;

beforeAll(async () => {
  site = await createSite('unwatch');
});
afterAll(() => site[Symbol.asyncDispose]());

/** Large enough for several transactions. */
const table = clusterOf(2000);

async function nft(script: string): Promise<void> {
  const { exitCode, stderr } = await site.node.run('nft', ['-f', '-'], { stdin: script });
  expect([exitCode, stderr]).toEqual([0, '']);
}

/** Sockets of the node's namespace that receive notices of nftables: NETLINK_NETFILTER, group 7. */
async function listeners(): Promise<number> {
  const { stdout } = await site.node.run('cat', ['/proc/net/netlink']);
  const rows = stdout.split('\n').map((line) => line.trim().split(/\s+/));
  return rows.filter(([, protocol, , groups = '0']) => protocol === '12' && (parseInt(groups, 16) & 0x40) !== 0).length;
}

/** Applies the table for the first time, while it is watched; `between` runs once between two transactions. */
async function load(between: () => Promise<void>) {
  const reports: Drift[] = [];
  let isDone = false;
  const clock: Clock = {
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic(),
    sleep: async (duration, signal) => {
      if (duration === 0 && !isDone) {
        isDone = true;
        await between();
      }
      await systemClock.sleep(duration, signal);
    },
  };
  const stop = new AbortController();
  const host = { logger: noopLogger, clock, netns: `/run/netns/${site.node.namespace}` };
  await using other = await nftablesBackend.open(host, 'IPv6', stop.signal);
  await other.apply({ table: clusterOf(0), scope: { kind: 'full' } }, stop.signal); // makes the table of both families
  await using backend = await nftablesBackend.open(host, 'IPv4', stop.signal);
  const watching = backend.observers.drift?.((drift) => reports.push(drift), stop.signal);
  try {
    await until('the watch', async () => (await listeners()) === 1);
    const { status } = await backend.apply({ table, scope: { kind: 'full' } }, stop.signal);
    expect([status, isDone]).toEqual(['applied', true]);
    await until('the watch again', async () => (await listeners()) === 1);
    await nft('add table inet later\ndelete table inet later');
    await systemClock.sleep(millis(500), stop.signal); // changes that were missed are reported before this notice
    const { stdout: rules } = await site.node.run('nft', ['list', 'chain', 'inet', 'switchyard', 'services']);
    return { reports, rules };
  } finally {
    stop.abort();
    await watching;
    await backend.cleanup(new AbortController().signal);
    await other.cleanup(new AbortController().signal);
  }
}

test('no socket receives notices of a large first apply, and changes of other tables are no drift', async () => {
  let during = -1;
  const { reports } = await load(async () => {
    during = await listeners();
    await nft('add table inet theirs\ndelete table inet theirs');
  });
  expect(during).toBe(0);
  expect(reports).toEqual([]);
});

test('a foreign rule that came during a large first apply is deleted after it', async () => {
  const { rules } = await load(() => nft('insert rule inet switchyard services drop'));
  expect(rules).toContain('chain services');
  expect(rules).not.toContain('\tdrop');
});

test('rules that were deleted during a large first apply are drift', async () => {
  const { reports } = await load(() => nft('flush chain inet switchyard services'));
  expect(reports).toMatchObject([{ kind: 'unknown', changes: ['unknown changes during a load'] }]);
});
