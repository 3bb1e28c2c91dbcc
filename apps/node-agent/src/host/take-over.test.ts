import { type FamilyStatus, type ReconcilerStatus } from '@switchyard/core/engine';
import {
  type IpFamily,
  type Logger,
  millis,
  nodeName,
  noopLogger,
  type RecordedEvent,
  serviceKey,
  servicePortKey,
} from '@switchyard/core';
import { ManualClock, settle } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { LeftRules } from '../cleanup/left-rules.ts';
import { nothingRemoved, type Removal } from '../cleanup/removal.ts';
import { TakeOver } from './take-over.ts';

const failure = { text: 'refused', since: millis(0) };
const cart = servicePortKey(serviceKey('shop', 'cart'), '', 'TCP');

function family(ipFamily: IpFamily, changes: Partial<FamilyStatus> = {}): FamilyStatus {
  const applied = {
    lastApplied: millis(1),
    generation: 1,
    slicesVersion: 0,
    pendingFor: undefined,
    failure: undefined,
  };
  return { ipFamily, ...applied, failedServices: new Map(), ...changes };
}

function status(...families: readonly FamilyStatus[]): ReconcilerStatus {
  const byFamily = new Map(families.map((one) => [one.ipFamily, one]));
  return { isInSync: true, missingResources: [], isNodeEligible: true, families: byFamily };
}

/** Removed rules are kube-proxy's by default. */
type End = Removal | LeftRules | Error;

/** A take-over whose first removal ends so, and the others as `later`. */
function bench(removal: End, later: End = removal) {
  const clock = new ManualClock();
  const logged: string[] = [];
  const events: RecordedEvent[] = [];
  const calls: ('all' | 'ours')[] = [];
  const log =
    (level: string): Logger['info'] =>
    (message) =>
      void logged.push(`${level}: ${message}`);
  const takeOver = new TakeOver({
    nodeName: nodeName('n1'),
    removeRules: async (whose) => {
      calls.push(whose);
      const end = calls.length === 1 ? removal : later;
      if (end instanceof Error) throw end;
      return 'ours' in end ? end : { ours: nothingRemoved, kubeProxy: end };
    },
    clock,
    logger: { ...noopLogger, info: log('info'), warn: log('warn') },
    events: { record: (event) => void events.push(event) },
  });
  return { takeOver, logged, events, calls, clock };
}

const stillRuns = 'warn: rules of kube-proxy came back: it still runs on this node; stop it, or both translate';
const done = status(family('IPv4'), family('IPv6'));

describe('what kube-proxy left', () => {
  test.each<readonly [string, ReconcilerStatus]>([
    ['a family has no apply yet', status(family('IPv4'), family('IPv6', { lastApplied: undefined }))],
    ['the last apply of a family failed', status(family('IPv4', { failure }), family('IPv6'))],
    ['a service is not in the kernel', status(family('IPv4', { failedServices: new Map([[cart, failure]]) }))],
  ])('stays while %s', async (_, unready) => {
    const { takeOver, calls } = bench(nothingRemoved);
    takeOver.noteApplied(unready);
    await settle();
    expect(calls).toHaveLength(0);
    await takeOver[Symbol.asyncDispose]();
  });

  test('goes once, when everything is in the kernel in every family, with a log line and an Event', async () => {
    const { takeOver, calls, logged, events } = bench({ ...nothingRemoved, removed: ['nftables table ip kube-proxy'] });
    for (let round = 0; round < 3; round++) takeOver.noteApplied(done);
    await settle();
    await takeOver[Symbol.asyncDispose]();
    expect(calls).toHaveLength(1);
    expect(logged).toEqual(['info: removed what kube-proxy left']);
    expect(events).toEqual([
      {
        type: 'Normal',
        reason: 'KubeProxyRulesRemoved',
        action: 'TakeOver',
        regarding: { kind: 'Node', namespace: '', name: 'n1', uid: '' },
        note: 'removed what kube-proxy left: nftables table ip kube-proxy',
      },
    ]);
  });

  test('is not spoken of where there was nothing', async () => {
    const { takeOver, logged, events } = bench(nothingRemoved);
    takeOver.noteApplied(done);
    await takeOver[Symbol.asyncDispose]();
    expect([logged, events]).toEqual([[], []]);
  });

  test('is a warning and an Event where it cannot be removed; the agent goes on', async () => {
    const failures = [new Error('iptables-nft-restore exited with 4')];
    const { takeOver, logged, events } = bench({ removed: [], kept: ['chain X'], skipped: ['y'], failures });
    takeOver.noteApplied(done);
    await settle();
    await takeOver[Symbol.asyncDispose]();
    expect(logged).toEqual([
      'info: did not look for rules of kube-proxy',
      'info: rules of kube-proxy stay',
      'warn: what kube-proxy left could not be removed',
    ]);
    expect(events).toMatchObject([{ type: 'Warning', reason: 'FailedToRemoveKubeProxyRules' }]);
  });

  test('never ends the agent', async () => {
    const { takeOver, logged } = bench(new Error('a surprise'));
    takeOver.noteApplied(done);
    await settle();
    expect(logged).toEqual(['warn: what kube-proxy left could not be removed']);
    await takeOver[Symbol.asyncDispose]();
  });

  test.each<readonly [string, Removal | Error, readonly string[], readonly string[]]>([
    [
      'what came back says that kube-proxy still runs',
      { ...nothingRemoved, removed: ['table nat: 5 chains'] },
      [stillRuns],
      ['KubeProxyStillRuns'],
    ],
    ['nothing came back', nothingRemoved, [], []],
    ['it fails', new Error('a surprise'), ['warn: what kube-proxy left could not be removed'], []],
  ])('is looked for once more after 90 s: %s', async (_, later, lines, reasons) => {
    const { takeOver, calls, clock, logged, events } = bench(
      { ...nothingRemoved, removed: ['table nat: 9 chains'] },
      later,
    );
    takeOver.noteApplied(done);
    await clock.advance(89_000);
    expect([calls.length, logged.splice(0).length, events.splice(0).length]).toEqual([1, 1, 1]);
    await clock.advance(1000);
    await clock.advance(1_000_000);
    expect([calls.length, clock.sleeping]).toEqual([2, 0]);
    expect(logged).toEqual(lines);
    expect(events.map(({ reason }) => reason)).toEqual(reasons);
    await takeOver[Symbol.asyncDispose]();
  });

  test('is not looked for again where there was nothing', async () => {
    const { takeOver, calls, clock } = bench(nothingRemoved);
    takeOver.noteApplied(done);
    await clock.advance(1_000_000);
    expect([calls.length, clock.sleeping]).toEqual([1, 0]);
    await takeOver[Symbol.asyncDispose]();
  });

  test('is tried again where it cannot be removed, and told once', async () => {
    const failed: Removal = { ...nothingRemoved, failures: [new Error('the lock is held')] };
    const { takeOver, calls, clock, logged, events } = bench(failed);
    takeOver.noteApplied(done);
    await clock.advance(1);
    for (let look = 0; look < 20; look++) await clock.advance(90_000);
    expect([calls.length, clock.sleeping]).toEqual([10, 0]);
    expect(logged).toEqual(['warn: what kube-proxy left could not be removed']);
    expect(events).toHaveLength(1);
    await takeOver[Symbol.asyncDispose]();
  });
});

test('rules of another mode are reported as such, and a failed removal is retried until it succeeds', async () => {
  const first = { ...nothingRemoved, removed: ['nftables table inet switchyard'], failures: [new Error('busy')] };
  const ours = { ...nothingRemoved, removed: ['iptables-legacy, table nat: 9 chains'] };
  const { takeOver, calls, clock, logged, events } = bench(
    { ours: first, kubeProxy: nothingRemoved },
    { ours, kubeProxy: nothingRemoved },
  );
  takeOver.noteApplied(done);
  await clock.advance(1000);
  await clock.advance(1_000_000);
  expect([calls.length, clock.sleeping]).toEqual([2, 0]);
  expect(logged).toEqual([
    'info: removed what our other mode left',
    'warn: what our other mode left could not be removed',
    'info: removed what our other mode left',
  ]);
  expect(events.map(({ reason }) => reason)).toEqual([
    'OtherModeRulesRemoved',
    'FailedToRemoveOtherModeRules',
    'OtherModeRulesRemoved',
  ]);
  await takeOver[Symbol.asyncDispose]();
});

test('what our other mode left goes after a minute also where a Service is refused; what kube-proxy left does not', async () => {
  const partial = status(family('IPv4', { failedServices: new Map([[cart, failure]]) }));
  const ours = { ...nothingRemoved, removed: ['nftables table inet switchyard'] };
  const { takeOver, calls, clock, logged } = bench({ ours, kubeProxy: nothingRemoved }, nothingRemoved);
  takeOver.noteApplied(partial);
  await clock.advance(59_000);
  takeOver.noteApplied(partial);
  await settle();
  expect(calls).toEqual([]);
  await clock.advance(1000);
  for (let apply = 0; apply < 2; apply++) takeOver.noteApplied(partial);
  await settle();
  expect(calls).toEqual(['ours']);
  expect(logged).toEqual([
    'info: removed what our other mode left',
    'warn: refused Services lost the rules of our other mode',
  ]);
  takeOver.noteApplied(done);
  await settle();
  expect(calls).toEqual(['ours', 'all']);
  await takeOver[Symbol.asyncDispose]();
});
