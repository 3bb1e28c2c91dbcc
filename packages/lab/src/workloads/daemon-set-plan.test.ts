import type { DaemonSet } from '@switchyard/core/kubernetes';
import { describe, expect, test } from 'vitest';
import { daemonLimits, type DaemonNode, type DaemonPod, planDaemonSet } from './daemon-set-plan.ts';

const ready = { isTerminating: false, isEnded: false, isReady: true, isAvailable: true };
const pods: Readonly<Record<string, Omit<DaemonPod, 'name'>>> = {
  old: { ...ready, isUpdated: false },
  'old unready': { ...ready, isUpdated: false, isReady: false, isAvailable: false },
  'old leaving': { ...ready, isUpdated: false, isTerminating: true },
  'old ended': { ...ready, isUpdated: false, isEnded: true, isReady: false, isAvailable: false },
  new: { ...ready, isUpdated: true },
  'new unready': { ...ready, isUpdated: true, isReady: false, isAvailable: false },
  'new waiting': { ...ready, isUpdated: true, isAvailable: false },
};

/** A node per text: its pods, oldest first, by the names above; `!` in front: no pod is wanted there. */
function nodesOf(texts: readonly string[]): readonly DaemonNode[] {
  return texts.map((text, index) => {
    const names = text.replace('!', '').split(', ').filter(Boolean);
    const make = (name: string): DaemonPod => ({ name: `${name}@${index}`, ...pods[name]! });
    return { name: `n${index}`, isWanted: !text.startsWith('!'), pods: names.map(make) };
  });
}

const unavailable = (count: number): { surge: number; unavailable: number } => ({ surge: 0, unavailable: count });
const surge = (count: number): { surge: number; unavailable: number } => ({ surge: count, unavailable: 0 });

describe('with every strategy', () => {
  test.each([
    { what: 'a node without a pod gets one', nodes: ['', 'new'], step: ['+n0'] },
    { what: 'a node that is not wanted loses its pods', nodes: ['!old', 'new'], step: ['-old@0'] },
    { what: 'a node that is not wanted and has none gets none', nodes: ['!', 'new'], step: [] },
    { what: 'a pod that is leaving is waited for', nodes: ['old leaving'], step: [] },
    { what: 'a pod that has ended is removed', nodes: ['old ended'], step: ['-old ended@0'] },
    { what: 'of two pods the younger one goes', nodes: ['new, new'], step: ['-new@0'] },
  ])('$what', ({ nodes, step }) => {
    expect(textOf(planDaemonSet(nodesOf(nodes), unavailable(1), false))).toEqual(step);
  });
});

describe('a rolling update without surge', () => {
  test.each([
    { what: 'replaces one pod at a time', nodes: ['old', 'old', 'old'], max: 1, step: ['-old@0'] },
    { what: 'or as many as may be unavailable', nodes: ['old', 'old', 'old'], max: 2, step: ['-old@0', '-old@1'] },
    { what: 'waits while the first pod leaves', nodes: ['old leaving', 'old'], max: 1, step: [] },
    { what: 'makes the new pod when the old one is gone', nodes: ['', 'old'], max: 1, step: ['+n0'] },
    { what: 'waits until the new pod is ready', nodes: ['new unready', 'old'], max: 1, step: [] },
    { what: 'and until it is available', nodes: ['new waiting', 'old'], max: 1, step: [] },
    { what: 'then goes on to the next node', nodes: ['new', 'old'], max: 1, step: ['-old@1'] },
    {
      what: 'replaces a pod that is not ready at once',
      nodes: ['new unready', 'old unready'],
      max: 1,
      step: ['-old unready@1'],
    },
    { what: 'has nothing to do when all are new', nodes: ['new', 'new'], max: 1, step: [] },
  ])('$what', ({ nodes, max, step }) => {
    expect(textOf(planDaemonSet(nodesOf(nodes), unavailable(max), true))).toEqual(step);
  });
});

describe('a rolling update with surge', () => {
  test.each([
    { what: 'makes a second pod first', nodes: ['old', 'old'], max: 1, step: ['+n0'] },
    { what: 'or as many as it may', nodes: ['old', 'old', 'old'], max: 2, step: ['+n0', '+n1'] },
    { what: 'waits until it is available', nodes: ['old, new waiting', 'old'], max: 1, step: [] },
    {
      what: 'then deletes the old one, and makes the next',
      nodes: ['old, new', 'old'],
      max: 1,
      step: ['-old@0', '+n1'],
    },
    { what: 'does not count a node whose old pod leaves', nodes: ['old leaving, new', 'old'], max: 1, step: ['+n1'] },
    {
      what: 'replaces a pod that is not ready beyond its limit',
      nodes: ['old, new unready', 'old unready'],
      max: 1,
      step: ['+n1'],
    },
    {
      what: 'gives an old pod up that is no longer ready',
      nodes: ['old unready, new unready'],
      max: 1,
      step: ['-old unready@0'],
    },
  ])('$what', ({ nodes, max, step }) => {
    expect(textOf(planDaemonSet(nodesOf(nodes), surge(max), true))).toEqual(step);
  });
});

test('OnDelete leaves old pods alone', () => {
  expect(textOf(planDaemonSet(nodesOf(['old', 'old']), unavailable(1), false))).toEqual([]);
});

describe('limits of a DaemonSet on five nodes', () => {
  test.each([
    { what: 'the defaults', rolling: undefined, limits: { surge: 0, unavailable: 1 } },
    { what: 'percentages are rounded up', rolling: { maxUnavailable: '30%' }, limits: { surge: 0, unavailable: 2 } },
    { what: 'of surge too', rolling: { maxSurge: '1%', maxUnavailable: 0 }, limits: { surge: 1, unavailable: 0 } },
    {
      what: 'nothing at all is one',
      rolling: { maxSurge: 0, maxUnavailable: 0 },
      limits: { surge: 0, unavailable: 1 },
    },
  ])('$what', ({ rolling, limits }) => {
    const updateStrategy = rolling === undefined ? {} : { rollingUpdate: rolling };
    const spec = { selector: {}, template: { spec: { containers: [] } }, updateStrategy };
    expect(daemonLimits({ metadata: {}, spec } satisfies DaemonSet, 5)).toEqual(limits);
  });
});

function textOf({ remove, createOn }: ReturnType<typeof planDaemonSet>): readonly string[] {
  return [...remove.map((name) => `-${name}`), ...createOn.map((name) => `+${name}`)];
}
