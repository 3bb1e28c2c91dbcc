import { millis, type Millis } from '@switchyard/core';
import { healthCheckOf, profiles, type RunRecord, timelineSvg } from '@switchyard/rollout';
import { describe, expect, test } from 'vitest';
import { safeSvg } from '../../report/html/safe-svg.ts';
import { judge, timelineOf } from './rollout-verdict.ts';

const zero = 1_800_000_000_000;
const at = (second: number): Millis => millis(zero + second * 1000);
const rate = 40;

/** A pod of node1 is deleted at 0 s and serves until 4 s; 40/s straight to that node from -1 to 6 s; some are lost. */
function run(isLost: (second: number) => boolean): RunRecord {
  const oldPod = { name: 'old', node: 'node1' };
  const newPod = { name: 'new', node: 'node2' };
  return {
    settings: {
      terminatingFallback: true,
      proxyMode: 'nftables',
      rate,
      requestTimeout: millis(900),
      healthCheck: healthCheckOf(
        profiles.find(({ name }) => name === 'switchyard')!,
        {},
        0.1,
      ),
      runtime: 'process',
      fastDrain: false,
      delayShutdown: millis(4000),
      timeScale: 0.1,
    },
    path: { kind: 'node', name: 'outside', ipFamily: 'IPv4', node: 'node1', endpoints: 'own', frontend: 'nodePort' },
    startedAt: at(-1),
    endedAt: at(6),
    nodes: ['node1', 'node2'],
    moves: [{ oldPod, newPod, deletedAt: at(0) }],
    requests: Array.from({ length: 7 * rate }, (_, sequence) => {
      const second = -1 + sequence / rate;
      const time = at(second);
      const outcome = isLost(second) ? 'timeout' : 'answered';
      return { sequence, scheduledAt: time, sentAt: time, doneAt: time, outcome, answeredBy: undefined };
    }),
    pods: [
      { at: at(-0.1), pod: 'new', node: 'node2', phase: 'ready' },
      { at: at(0), pod: 'old', node: 'node1', phase: 'deleting' },
      { at: at(4), pod: 'old', node: 'node1', phase: 'ended' },
    ],
    endpoints: [
      { at: at(-1), node: 'node1', state: 'ready' },
      { at: at(0.01), node: 'node1', state: 'servingTerminating' },
      { at: at(4.05), node: 'node1', state: 'none' },
    ],
    syncs: undefined,
    health: [
      { at: at(-1), node: 'node1', status: 200 },
      { at: at(0.05), node: 'node1', status: 503 },
    ],
    loadBalancer: [],
    states: [],
    packetLosses: undefined,
  };
}

const judged = (isLost: (second: number) => boolean, more: Partial<RunRecord> = {}): ReturnType<typeof judge> => {
  const record = { ...run(isLost), ...more };
  const releasedAt = new Map([['old', at(4)]]);
  return judge(record, { explainAt: () => ['because'], releasedAt, beside: record.requests });
};

describe('the verdict on a node whose only pod serves for 4 s more', () => {
  test('all answered until shortly before its end: nothing is lost, and what comes later does not count', () => {
    const { lost, beside, summary } = judged((second) => second >= 3.7);
    expect({ lost, beside, requests: summary.requests }).toEqual({ lost: '0 lost', beside: undefined, requests: 184 });
  });

  test('dropped from the deletion on: as predicted for a proxy without the fallback, and by whose fault', () => {
    const { lost, beside, because, summary } = judged((second) => second >= 0.06);
    expect({ lost, beside }).toEqual({ lost: '141 lost', beside: undefined });
    expect(Object.keys(summary.lostByCause)).toEqual(['droppedByNodeAlone']);
    expect(because).toContain('because');
  });

  test('dropped for a second in the middle: the cause fits, the count does not', () => {
    expect(judged((second) => second >= 1 && second < 2).beside).toMatch(/^40 lost, 1\d\d to 1\d\d predicted$/);
  });

  test('one lost before anything happened fits no cause', () => {
    expect(judged((second) => second === -0.5).beside).toBe('1 lost, 0 to 0 predicted, 1 unexplained');
  });
});

test('a pod that is ready, not ready and ready again leaves the run without a verdict; the pods of a rollout do not', () => {
  const { pods } = run(() => false);
  const again = { at: at(3), pod: 'new', node: 'node2', phase: 'ready' } as const;
  expect(judged(() => true).doubt).toBeUndefined();
  expect(judged(() => true, { pods: [...pods, again] }).doubt).toBe(
    'the machine was too busy: the ready pod new failed its readiness probe',
  );
});

test('a timeline has milliseconds from its start, by lane', () => {
  const timeline = timelineOf(
    judged((second) => second >= 0.06),
    '<svg></svg>',
  );
  expect(timeline).toMatchObject({ title: 'outside', requests: 184, lost: 141, svg: '<svg></svg>' });
  expect(timeline.predictedLost.least).toBeLessThanOrEqual(141);
  expect(timeline.predictedLost.most).toBeGreaterThanOrEqual(141);
  expect(timeline.outcomes[0]).toEqual([0, 'answered']);
  expect(timeline.events[0]).toEqual({ at: 0, lane: 'slices', text: 'node1: ready' });
  expect(timeline.events).toContainEqual({ at: 1050, lane: 'health', text: 'node1: 503' });
});

test("the experiment's drawing is one that a report puts into its page", () => {
  const { run: judgedRun, summary } = judged((second) => second >= 0.06);
  const svg = timelineSvg(judgedRun, summary);
  expect(svg).toContain('141 requests lost');
  expect(safeSvg(svg)).toBe(svg);
});
