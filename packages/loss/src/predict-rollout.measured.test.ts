import { describe, expect, test } from 'vitest';
import { seconds } from '@switchyard/core';
import type { CheckTiming } from './check-timing.ts';
import { noneUpProbability } from './hole.ts';
import { predictRollout, type RolloutPrediction } from './predict-rollout.ts';
import { requiredServing } from './required-serving.ts';
import { knownProxyTiming, type ProxyTiming, type RolloutShape } from './rollout-setting.ts';
import {
  appServesFiveSeconds,
  appServesHalfAMinute,
  appStopsAtOnce,
  type Rollout,
} from './testing/measured-rollouts.ts';

/** Requests per second of the measurement. */
const rate = 20;

const check = (interval: number, fall: number): CheckTiming => ({
  interval: seconds(interval),
  downInterval: seconds(interval),
  fall,
  rise: 1,
  timeout: undefined,
  whenNoneUp: 'close',
  lastUpFor: seconds(0),
});
const slow = check(5, 3);
const fast = check(2, 1);

/** The Deployment of the measurement: one pod that moves to the other node. */
const shape: RolloutShape = {
  replicas: 1,
  nodes: 2,
  spread: 'perNode',
  strategy: { kind: 'RollingUpdate', maxSurge: 1, maxUnavailable: 0 },
  minReady: seconds(0),
};

function proxyOf(name: string): ProxyTiming {
  if (name.startsWith('new-nftables-10ms')) return knownProxyTiming('switchyard');
  if (name.startsWith('new-')) return knownProxyTiming('kube-proxy');
  return {
    ...knownProxyTiming('kube-proxy-1.25'),
    terminatingFallback: name.startsWith('old-iptables-gate'),
  };
}

function predict(name: string, timing: CheckTiming, drain: number): RolloutPrediction {
  const app = { startup: seconds(1), preStop: seconds(0), drain: seconds(drain), gracePeriod: seconds(30) };
  return predictRollout({ policy: 'Local', check: timing, proxy: proxyOf(name), app, shape });
}

// When the app stopped accepting: +0.03..+0.12 s, +5.0 s, and only the end of the grace period.
const groups = [
  { group: 'the app serves 30 s', rollouts: appServesHalfAMinute, drain: 30 },
  { group: 'the app stops at once', rollouts: appStopsAtOnce, drain: 0.04 },
  { group: 'the app serves 5 s', rollouts: appServesFiveSeconds, drain: 5 },
];

const rowsOf = (rollouts: readonly Rollout[], drain: number) =>
  rollouts.flatMap(([name, , ...sides]) =>
    sides.map(([newUp, oldDown, , lost], index) => ({
      name: `${name}, ${index === 0 ? '5s x 3' : '2s x 1'}`,
      proxy: proxyOf(name),
      timing: index === 0 ? slow : fast,
      newUp,
      oldDown,
      lost,
      prediction: predict(name, index === 0 ? slow : fast, drain),
    })),
  );
const rows = groups.flatMap(({ group, rollouts, drain }) => rowsOf(rollouts, drain).map((row) => ({ ...row, group })));

test('all 76 measurements are here', () => {
  expect(rows.length).toBe(76);
});

describe.each(groups)('predictRollout, where $group', ({ group }) => {
  // The model itself, given the measured moments, is -1 to +3 requests off: requests under way, and a prober's 0.1 s.
  test.each(rows.filter((row) => row.group === group))('holds $name between best and worst', ({ lost, prediction }) => {
    expect(lost).toBeGreaterThanOrEqual((rate * prediction.best) / 1000 - 1);
    expect(lost).toBeLessThanOrEqual((rate * prediction.worst) / 1000 + 3);
  });
  test.each(rows.filter((row) => row.group === group && row.prediction.worst === 0))(
    'loses nothing where it says so: $name',
    ({ lost }) => {
      expect(lost).toBe(0);
    },
  );
});

test.each(rows)(
  'an app that serves for as long as required is there until the load balancer has left: $name',
  (row) => {
    const proxy = { ...row.proxy, terminatingFallback: true };
    const required = requiredServing({ policy: 'Local', check: row.timing, proxy, shape });
    expect(seconds(row.oldDown)).toBeLessThanOrEqual(required ?? 0);
  },
);

test('without the fallback no time is enough', () => {
  expect(
    requiredServing({ policy: 'Local', check: slow, proxy: knownProxyTiming('kube-proxy-1.25'), shape }),
  ).toBeUndefined();
});

test.each(rows.filter(({ newUp, oldDown }) => newUp > oldDown))(
  'a hole was seen only where one can be: $name',
  (row) => {
    expect(noneUpProbability(row.timing, row.proxy.noticesTerminating.shortest)).toBeGreaterThan(0);
  },
);
