import { ConfigError } from '@switchyard/core';
import { ManualClock, MemoryLogger, settle } from '@switchyard/core/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ClusterSet } from './cluster-set.ts';

const kubeconfig = (server: string): string =>
  JSON.stringify({
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c' } }],
    clusters: [{ name: 'c', cluster: { server } }],
  });
const cluster = (name: string, port = 6443): { name: string; kubeconfig: string } => ({
  name,
  kubeconfig: kubeconfig(`https://127.0.0.1:${port}`),
});

let clock: ManualClock;
let log: MemoryLogger;
let set: ClusterSet;
/** `+name port` when serving begins, `-name port` when it has ended, `gone name`. */
let seen: string[];
/** Duration of stopping. */
let windingUp: number;
let failure: Error | undefined;

beforeEach(() => {
  clock = new ManualClock();
  log = new MemoryLogger();
  seen = [];
  windingUp = 0;
  failure = undefined;
  set = new ClusterSet({
    serve: async ({ name, connection }, signal) => {
      const what = `${name} ${connection.url.port}`;
      seen.push(`+${what}`);
      if (failure !== undefined) throw failure;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      if (windingUp > 0) await clock.sleep(windingUp as never, new AbortController().signal);
      seen.push(`-${what}`);
      throw signal.reason;
    },
    onGone: (name) => seen.push(`gone ${name}`),
    clock,
    log,
  });
});
afterEach(async () => {
  const disposed = set[Symbol.asyncDispose]();
  await clock.advance(60_000);
  await disposed;
  expect(clock.sleeping).toBe(0);
});

const update = async (...clusters: readonly { name: string; kubeconfig: string }[]): Promise<void> => {
  set.update(clusters);
  // The kubeconfig reader is loaded when it is first needed.
  for (let round = 0; round < 20; round++) await settle();
};

test('clusters that come are served, once; those that go are not any more', async () => {
  await update(cluster('a'), cluster('b', 7443));
  await expect.poll(() => seen).toHaveLength(2);
  await update(cluster('a'), cluster('b', 7443));
  expect(seen.toSorted()).toEqual(['+a 6443', '+b 7443']);
  expect(set.has('a')).toBe(true);
  await update(cluster('b', 7443));
  expect(seen.slice(2)).toEqual(['-a 6443', 'gone a']);
  expect(set.has('a')).toBe(false);
});

test('a cluster with another kubeconfig is served anew, when the old serving has ended', async () => {
  windingUp = 500;
  await update(cluster('a'));
  await expect.poll(() => seen).toEqual(['+a 6443']);
  await update(cluster('a', 7443));
  expect(seen).toEqual(['+a 6443']);
  await clock.advance(500);
  await expect.poll(() => seen).toEqual(['+a 6443', '-a 6443', '+a 7443']);
});

test('a cluster that comes back while it is being stopped was never gone', async () => {
  windingUp = 500;
  await update(cluster('a'));
  await expect.poll(() => seen).toEqual(['+a 6443']);
  await update();
  await update(cluster('a'));
  await clock.advance(500);
  await expect.poll(() => seen).toEqual(['+a 6443', '-a 6443', '+a 6443']);
});

test('one that fails is served again after ten seconds, and does not hurt the others', async () => {
  failure = new ConfigError('x', 'no good');
  await update(cluster('bad'));
  await expect.poll(() => seen).toEqual(['+bad 6443']);
  failure = undefined;
  await update(cluster('bad'), cluster('good'));
  await expect.poll(() => seen).toEqual(['+bad 6443', '+good 6443']);
  await clock.advance(10_000);
  await expect.poll(() => seen.at(-1)).toBe('+bad 6443');
  expect(log.transitions).toEqual(['error a cluster cannot be served; will be tried again']);
});

test('an invalid kubeconfig is logged', async () => {
  await update({ name: 'a', kubeconfig: 'x' });
  await expect
    .poll(() => log.lines[0]?.fields)
    .toMatchObject({ cluster: 'a', reason: expect.stringContaining('kubeconfig of cluster a: ') });
});
