import { describe, expect, test } from 'vitest';
import { millis, seconds } from '@switchyard/core';
import { noneUpProbability } from './hole.ts';
import { knownChecks } from './known-checks.ts';
import { predictRollout } from './predict-rollout.ts';
import { requiredServing } from './required-serving.ts';
import {
  type AppTiming,
  fastDrainTiming,
  knownProxyTiming,
  type RolloutSetting,
  servingTime,
  withFastDrain,
} from './rollout-setting.ts';

const app: AppTiming = { startup: seconds(2), preStop: seconds(0), drain: seconds(0), gracePeriod: seconds(30) };
const serving = (duration: number): AppTiming => ({ ...app, drain: seconds(duration), gracePeriod: seconds(600) });

/** One pod that moves to the other of two nodes behind HAProxy's 5s x 3, with kube-proxy 1.36, and stops at SIGTERM. */
const base: RolloutSetting = {
  policy: 'Local',
  check: knownChecks['cloud-provider-kind'],
  proxy: knownProxyTiming('kube-proxy'),
  app,
  shape: {
    replicas: 1,
    nodes: 2,
    spread: 'perNode',
    strategy: { kind: 'RollingUpdate', maxSurge: 1, maxUnavailable: 0 },
    minReady: seconds(0),
  },
};
const recreate: RolloutSetting = { ...base, shape: { ...base.shape, strategy: { kind: 'Recreate' } } };
const quick: RolloutSetting = {
  ...base,
  check: knownChecks['cloud-provider-kind-envoy'],
  proxy: knownProxyTiming('switchyard'),
};
const open: RolloutSetting = { ...base, check: knownChecks['aws-nlb'] };

/** Expected and worst loss in seconds, with one decimal. */
function loss(setting: RolloutSetting): readonly [expected: number, worst: number] {
  const { expected, worst } = predictRollout(setting);
  const tenths = (duration: number): number => Math.round(duration / 100) / 10;
  return [tenths(expected), tenths(worst)];
}

describe('predictRollout, expected and at worst, in seconds', () => {
  test.each<[what: string, setting: RolloutSetting, expected: number, worst: number]>([
    ['an app that stops at SIGTERM', base, 8.1, 10.6],
    ['one that serves for 5 s', { ...base, app: serving(5) }, 4.3, 5.6],
    ['one that serves for as long as it must', { ...base, app: serving(16.15) }, 0, 0],
    [
      'without the fallback, however long it serves',
      { ...base, app: serving(60), proxy: knownProxyTiming('kube-proxy-1.25') },
      7.4,
      10,
    ],
    ['a quick check with a quick proxy: the hole', { ...quick, app: serving(60) }, 0.3, 2.1],
    ['our profile has none', { ...quick, app: serving(60), check: knownChecks.switchyard }, 0, 0],
    ['our profile, an app that stops at SIGTERM', { ...quick, check: knownChecks.switchyard }, 0.6, 1.2],
    // Two nodes get their new pod before the load balancer has noticed: 2 s at a third each. The last is left after 13.6 s, a quarter.
    ['three on four nodes', { ...base, shape: { ...base.shape, replicas: 3, nodes: 4 } }, 4.7, 5.6],
    [
      'fast drain, and others to go to',
      { ...base, fastDrain: { shortest: seconds(0.1), longest: seconds(1) } },
      2.6,
      5.1,
    ],
    ['policy Cluster: half of the traffic until the proxies know', { ...base, policy: 'Cluster' }, 0.6, 0.6],
    [
      'policy Cluster, an app that serves until the proxies know',
      { ...base, policy: 'Cluster', app: serving(1.2) },
      0,
      0,
    ],
    ['AWS NLB, an app that serves on: on two nodes both answer', { ...open, app: serving(60) }, 0, 0],
    // In 41 % of the phases no node is UP, for 9 s at most: two of four nodes drop their part.
    ['AWS NLB on four nodes', { ...open, app: serving(60), shape: { ...base.shape, nodes: 4 } }, 0.6, 4.5],
    [
      'AWS NLB on four nodes, with fast drain: nodes without a pod are left out',
      {
        ...open,
        app: serving(60),
        shape: { ...base.shape, nodes: 4 },
        fastDrain: { shortest: seconds(0.1), longest: seconds(1) },
      },
      0,
      0,
    ],
    // 2 s until the new pod is ready; in a fifth of the phases the node is out by then, and back a check later.
    ['Recreate: an outage', { ...recreate, app: serving(10) }, 3, 7.1],
    [
      'a single node, whose load balancer has nowhere to go',
      { ...base, shape: { ...base.shape, nodes: 1, spread: 'anywhere' } },
      0.6,
      0.6,
    ],
    [
      'pods enough for every node',
      { ...base, app: serving(1.2), shape: { ...base.shape, replicas: 4, spread: 'anywhere' } },
      0,
      0,
    ],
  ])('%s', (_, setting, expected, worst) => {
    expect(loss(setting)).toEqual([expected, worst]);
  });

  test('minReadySeconds lets the load balancer take the new node in first', () => {
    const patient = { ...quick, app: serving(60), shape: { ...quick.shape, minReady: seconds(3) } };
    expect(loss(patient)).toEqual([0, 0]);
  });
  test('the mean is that of the measured page: 148 requests at 20/s', () => {
    const old = { ...base, app: serving(30), proxy: knownProxyTiming('kube-proxy-1.25') };
    expect((predictRollout(old).expected / 1000) * 20).toBeCloseTo(148, -0.5);
  });
  test('the probability of a loss is that of the hole, where there is no other', () => {
    const delay = millis(0);
    const proxy = { ...knownProxyTiming('switchyard'), noticesReady: { shortest: delay, longest: delay } };
    const exact = { ...quick, app: serving(60), proxy: { ...proxy, noticesTerminating: proxy.noticesReady } };
    const { probability, noneUp } = predictRollout(exact);
    // The old pod goes 30 ms after the new one is ready.
    expect(probability).toBeCloseTo(noneUpProbability(exact.check, millis(30)), 1);
    expect(noneUp).toBe(probability);
  });
  test('says the causes, which add up', () => {
    const { byCause, expected } = predictRollout(quick);
    expect(Object.keys(byCause).toSorted()).toEqual(['appGone', 'noServerUp']);
    expect(Math.abs(Object.values(byCause).reduce((sum, one) => sum + one, 0) - expected)).toBeLessThanOrEqual(1);
  });
  test('a rollout that cannot end has no duration', () => {
    expect(predictRollout({ ...base, shape: { ...base.shape, nodes: 1 } }).duration).toBeUndefined();
  });
  test('is the same each time', () => {
    expect(predictRollout(quick)).toEqual(predictRollout(quick));
  });
});

describe('requiredServing', () => {
  const ours = { ...base, check: knownChecks.switchyard };
  test.each<[what: string, setting: RolloutSetting, required: number | undefined]>([
    ['5s x 3 and kube-proxy 1.36', base, 16.15],
    ['2s x 1 and a quick proxy', quick, 2.12],
    [
      'the whole pause of DOWN nodes, where the last one serves on while none is UP',
      { ...ours, check: { ...ours.check, downInterval: seconds(8) } },
      8.12,
    ],
    [
      'fast drain: until the other node is in',
      { ...base, fastDrain: { shortest: seconds(0.1), longest: seconds(1) } },
      5.12,
    ],
    [
      'fast drain, where checks take the new node in at once',
      {
        ...base,
        check: { ...base.check, downInterval: millis(100) },
        fastDrain: { shortest: seconds(0.1), longest: seconds(1) },
      },
      1,
    ],
    ['policy Cluster', { ...base, policy: 'Cluster' }, 1.15],
    ['no fallback', { ...base, proxy: knownProxyTiming('kube-proxy-1.25') }, undefined],
  ])('of %s', (_, setting, required) => {
    const found = requiredServing(setting);
    expect(found === undefined ? undefined : Math.round(found)).toBe(
      required === undefined ? undefined : Math.round(required * 1000),
    );
  });
  test.each(Object.entries(knownChecks))('behind %s is enough, and a second less is not', (_, check) => {
    const setting = { ...base, check, proxy: knownProxyTiming('switchyard') };
    const required = (requiredServing(setting) ?? 0) / 1000;
    const gone = (duration: number): number =>
      predictRollout({ ...setting, app: serving(duration) }).byCause.appGone ?? 0;
    expect(gone(required)).toBe(0);
    expect(gone(required - 1)).toBeGreaterThan(0);
  });
  test.each(Object.entries(knownChecks))(
    'with fast drain behind %s half a second is enough, without a hole',
    (_, check) => {
      const shape = { ...base.shape, nodes: 4 };
      const proxy = knownProxyTiming('switchyard');
      const setting = { ...base, shape, proxy, check: withFastDrain(check), fastDrain: fastDrainTiming };
      expect(requiredServing(setting)).toBe(500);
      expect(predictRollout({ ...setting, app: serving(0.5) })).toMatchObject({ worst: 0, noneUp: 0 });
      expect(predictRollout({ ...setting, app: serving(0.2) }).worst).toBeGreaterThan(0);
    },
  );
});

describe('servingTime', () => {
  test.each<[what: string, app: Partial<AppTiming>, serves: number]>([
    ['nothing at all', {}, 0],
    ['preStop and drain', { preStop: seconds(5), drain: seconds(3) }, 8],
    ['no longer than the grace period', { preStop: seconds(20), drain: seconds(20) }, 30],
    ['2 s more after a preStop that outlasts it', { preStop: seconds(40), drain: seconds(20) }, 32],
    ['nothing more for an app that stops at SIGTERM', { preStop: seconds(40) }, 30],
  ])('is %s', (_, changes, serves) => {
    expect(servingTime({ ...app, ...changes })).toBe(seconds(serves));
  });
});
