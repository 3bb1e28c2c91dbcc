import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock, settle } from '../../testing/manual-clock.ts';
import { MemoryLeases } from '../../testing/memory-leases.ts';
import { MemoryLogger } from '../../testing/memory-logger.ts';
import { runAsLeader } from './run-as-leader.ts';

/** A process that wants to lead. */
interface Candidate {
  /** Events of its work. */
  readonly seen: string[];
  readonly stop: AbortController;
  readonly logger: MemoryLogger;
  /** How `runAsLeader` ended; undefined while it runs. */
  end: unknown;
}

const stopped = new Error('stopped');
let clock: ManualClock;
let api: MemoryLeases;
let candidates: Candidate[];

beforeEach(() => {
  clock = new ManualClock(Date.parse('2026-11-21T10:00:00Z'));
  api = new MemoryLeases();
  candidates = [];
});

afterEach(async () => {
  for (const { stop } of candidates) stop.abort(stopped);
  api.trouble = () => 'none';
  await clock.advance(60_000);
  expect(clock.sleeping).toBe(0);
});

/** Works until the abort, then for `windingUp` more. */
async function candidate(identity: string, { windingUp = 0, at = clock } = {}): Promise<Candidate> {
  const self: Candidate = { seen: [], stop: new AbortController(), logger: new MemoryLogger(), end: undefined };
  candidates.push(self);
  const work = async (signal: AbortSignal): Promise<void> => {
    self.seen.push('begins');
    await at.sleep(1e12 as never, signal).catch(() => undefined);
    if (windingUp > 0) await at.sleep(windingUp as never, new AbortController().signal);
    self.seen.push('ends');
    throw signal.reason;
  };
  const options = { send: api.send, namespace: 'kube-system', name: 'lb', identity, clock: at };
  void runAsLeader({ ...options, random: () => 0, log: self.logger }, work, self.stop.signal).then(
    () => (self.end = 'resolved'),
    (error: unknown) => (self.end = error),
  );
  await settle();
  return self;
}

describe('one candidate', () => {
  test('makes the lease, works, and renews it every two seconds', async () => {
    const one = await candidate('a');
    expect(one.seen).toEqual(['begins']);
    expect(api.spec('lb')).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-11-21T10:00:00.000000Z',
      renewTime: '2026-11-21T10:00:00.000000Z',
      leaseTransitions: 0,
    });
    await clock.advance(4000);
    expect(api.spec('lb')).toMatchObject({
      acquireTime: '2026-11-21T10:00:00.000000Z',
      renewTime: '2026-11-21T10:00:04.000000Z',
    });
    expect(api.requests).toEqual(['GET lb', 'POST lb by a', 'PUT lb by a', 'PUT lb by a']);
  });

  test('releases the lease on an abort', async () => {
    const one = await candidate('a');
    one.stop.abort(stopped);
    await settle();
    expect(one.seen).toEqual(['begins', 'ends']);
    expect(one.end).toBe(stopped);
    expect(api.spec('lb')).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
  });

  test('gives the lease back although the answer to its last renewal never came', async () => {
    const one = await candidate('a');
    api.trouble = ({ method }) => (method === 'PUT' ? 'answerLost' : 'none');
    await clock.advance(2000);
    api.trouble = () => 'none';
    one.stop.abort(stopped);
    await settle();
    expect(one.end).toBe(stopped);
    expect(api.spec('lb')).toMatchObject({ holderIdentity: '' });
  });

  test('that is stopped leaves a lease alone that another one has by now', async () => {
    const one = await candidate('a');
    const { signal } = new AbortController();
    const path = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/lb';
    const { body } = await api.send({ method: 'GET', path }, signal);
    const lease = JSON.parse(body) as { readonly spec: object };
    await api.send({ method: 'PUT', path, body: { ...lease, spec: { ...lease.spec, holderIdentity: 'b' } } }, signal);
    one.stop.abort(stopped);
    await settle();
    expect(one.end).toBe(stopped);
    expect(api.spec('lb')).toMatchObject({ holderIdentity: 'b' });
  });

  test('keeps the lease until its work has ended', async () => {
    const one = await candidate('a', { windingUp: 20_000 });
    one.stop.abort(stopped);
    await clock.advance(19_999);
    expect(api.spec('lb')).toMatchObject({ holderIdentity: 'a', renewTime: '2026-11-21T10:00:18.000000Z' });
    await clock.advance(1);
    expect(api.spec('lb')).toMatchObject({ holderIdentity: '' });
  });

  test('ends with its work, whether that went well or not', async () => {
    const options = { send: api.send, namespace: 'n', name: 'lb', identity: 'a', clock, random: () => 0 };
    const log = new MemoryLogger();
    const { signal } = new AbortController();
    await runAsLeader({ ...options, log }, () => Promise.resolve(), signal);
    const broken = new Error('broken');
    await expect(runAsLeader({ ...options, log }, () => Promise.reject(broken), signal)).rejects.toBe(broken);
    expect(api.spec('lb')).toMatchObject({ holderIdentity: '', leaseTransitions: 1 });
  });
});

describe('an API server', () => {
  test('that is away for less than ten seconds ends no work', async () => {
    const one = await candidate('a');
    api.trouble = () => 'unreachable';
    await clock.advance(9999);
    api.trouble = () => 'none';
    await clock.advance(60_000);
    expect(one.seen).toEqual(['begins']);
  });

  test.each(['unreachable', 'hang', 500] as const)('whose answer is %s for ten seconds ends it', async (trouble) => {
    const one = await candidate('a');
    api.trouble = () => trouble;
    await clock.advance(9999);
    expect(one.seen).toEqual(['begins']);
    await clock.advance(1);
    expect(one.seen).toEqual(['begins', 'ends']);
    api.trouble = () => 'none';
    await clock.advance(20_000);
    expect(one.seen).toEqual(['begins', 'ends', 'begins']);
    expect(one.logger.transitions.find((line) => line.startsWith('warn'))).toBe(
      'warn no longer leading; waiting for the lease',
    );
  });

  test('whose answers get lost does not make us strangers to our own lease', async () => {
    const one = await candidate('a');
    api.trouble = ({ method }) => (method === 'PUT' ? 'answerLost' : 'none');
    await clock.advance(6000);
    api.trouble = () => 'none';
    await clock.advance(20_000);
    expect(one.seen).toEqual(['begins']);
    expect(api.spec('lb')).toMatchObject({ holderIdentity: 'a', leaseTransitions: 0 });
  });

  test('that is away at the start is waited for, and told of once', async () => {
    api.trouble = () => 403;
    const one = await candidate('a');
    await clock.advance(10_000);
    expect(one.seen).toEqual([]);
    expect(one.logger.transitions).toEqual(['warn cannot read the lease; will be tried again']);
    api.trouble = () => 'none';
    await clock.advance(2000);
    expect(one.seen).toEqual(['begins']);
  });
});

describe('two candidates', () => {
  test('of two, one works', async () => {
    const one = await candidate('a');
    const two = await candidate('b');
    await clock.advance(120_000);
    expect([one.seen, two.seen]).toEqual([['begins'], []]);
    expect(two.logger.transitions).toEqual(['info waiting for the lease']);
  });

  test('the second follows at once when the first is stopped', async () => {
    const one = await candidate('a');
    const two = await candidate('b');
    one.stop.abort(stopped);
    await clock.advance(2000);
    expect(two.seen).toEqual(['begins']);
    expect(api.spec('lb')).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
  });

  test('the second follows after the lease’s duration when the first is killed', async () => {
    const dead = new ManualClock();
    const one = await candidate('a', { at: dead });
    const two = await candidate('b');
    await clock.advance(14_999);
    expect(two.seen).toEqual([]);
    await clock.advance(2001);
    expect([one.seen, two.seen]).toEqual([['begins'], ['begins']]);
    // The first one wakes up: its next attempt to renew fails.
    await dead.advance(2000);
    expect(one.seen).toEqual(['begins', 'ends']);
    one.stop.abort(stopped);
    await dead.advance(60_000);
  });

  test('wall clocks do not matter', async () => {
    const fast = new ManualClock(Date.parse('2031-01-01T00:00:00Z'));
    const one = await candidate('a');
    const two = await candidate('b', { at: fast });
    for (let second = 0; second < 40; second++) {
      await clock.advance(1000);
      await fast.advance(1000);
    }
    expect([one.seen, two.seen]).toEqual([['begins'], []]);
    two.stop.abort(stopped);
    await fast.advance(10_000);
  });

  test('of two that come at the same time, one works', async () => {
    const [one, two] = await Promise.all([candidate('a'), candidate('b')]);
    expect([...one.seen, ...two.seen]).toEqual(['begins']);
  });
});
