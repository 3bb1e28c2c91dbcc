import { describe, expect, test } from 'vitest';
import { healthProfile } from '../health-profile/health-profiles.ts';
import type { RawServiceSpec } from '../testing/builders.ts';
import { lbSlice, type PlanInput } from '../testing/plan-input.ts';
import { annotated, labelled, local, node1, node2, plan, specOf } from '../testing/plan-one.ts';

const fastDrain = annotated({ 'fast-drain': 'true' });

describe('fast drain', () => {
  const drainingIn = (parts: RawServiceSpec, endpoints: readonly string[], input: Partial<PlanInput> = {}): unknown =>
    specOf(plan(parts, { slices: [lbSlice('default/web', endpoints)], ...input }))
      .ports[0]?.targets.filter(({ draining }) => draining !== 'no')
      .map(({ name, draining }) => `${name} ${draining}`);
  const drained = { spec: local, metadata: fastDrain };

  test.each<[title: string, endpoints: readonly string[], draining: readonly string[]]>([
    ['ready on both nodes: none drains', ['10.244.1.5@node1', '10.244.2.5@node2'], []],
    [
      'the old pod terminates, the new one is ready',
      ['10.244.1.5@node1 terminating', '10.244.2.5@node2'],
      ['node1 serving'],
    ],
    ['the old pod is not ready', ['10.244.1.5@node1 unready', '10.244.2.5@node2'], ['node1 empty']],
    ['the old pod is gone, its check may not have failed yet', ['10.244.2.5@node2'], ['node1 empty']],
    [
      'a ready pod beside the one that terminates',
      ['10.244.1.5@node1 terminating', '10.244.1.6@node1', '10.244.2.5@node2'],
      [],
    ],
    ['no other is ready: it goes on', ['10.244.1.5@node1 terminating', '10.244.2.5@node2 unready'], ['node2 empty']],
    [
      'the ready one is on a node that is left out',
      ['10.244.1.5@node1 terminating', '10.244.0.5@control-plane'],
      ['node2 empty'],
    ],
    ['no endpoints at all', [], []],
  ])('%s', (_, endpoints, draining) => {
    expect(drainingIn(drained, endpoints, { nodes: [node1, node2, labelled] })).toEqual(draining);
  });

  const rollout = ['10.244.1.5@node1 terminating', '10.244.2.5@node2'];
  test.each<[title: string, parts: RawServiceSpec, input: Partial<PlanInput>, draining: readonly string[]]>([
    ['off by default', { spec: local }, {}, []],
    ['on by flag', { spec: local }, { defaults: { isFastDrain: true } }, ['node1 serving']],
    [
      'off by annotation',
      { spec: local, metadata: annotated({ 'fast-drain': 'false' }) },
      { defaults: { isFastDrain: true } },
      [],
    ],
    ['means nothing with Cluster: every node reaches every pod', { metadata: fastDrain }, {}, []],
    [
      'works on the transparent path too',
      { spec: local, metadata: annotated({ 'fast-drain': 'true', path: 'transparent' }) },
      {},
      ['node1 serving'],
    ],
  ])('%s', (_, parts, input, draining) => {
    expect(drainingIn(parts, rollout, input)).toEqual(draining);
  });

  test.each<[title: string, parts: RawServiceSpec, profile: object]>([
    [
      'asks nodes that are DOWN often and believes the first answer, for the old one is left when the new one is UP',
      drained,
      { downInterval: 250, rise: 1, whenNoneUp: 'lastUp', lastUpFor: 10_000 },
    ],
    [
      'asks them as the profile says with Cluster',
      { metadata: fastDrain },
      { downInterval: 5000, rise: 2, whenNoneUp: 'close' },
    ],
    [
      'asks them as the profile says when it is off',
      { spec: local },
      { downInterval: 5000, rise: 2, whenNoneUp: 'close' },
    ],
  ])('%s', (_, parts, profile) => {
    const slow = { healthProfileOf: () => healthProfile('azure-lb') };
    expect(specOf(plan(parts, { defaults: slow })).profile).toMatchObject({ interval: 5000, fall: 2, ...profile });
  });
});
