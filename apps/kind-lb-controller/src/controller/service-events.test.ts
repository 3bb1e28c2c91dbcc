import { type NodeName, nodeName, type RecordedEvent } from '@switchyard/core';
import { beforeEach, describe, expect, test } from 'vitest';
import type { LoadBalancerService } from '../cluster/cluster-objects.ts';
import { type ExcludedNode, excludedNodesText } from '../plan/problem.ts';
import { lbService } from '../testing/builders.ts';
import { ServiceEvents } from './service-events.ts';

let recorded: RecordedEvent[];
let events: ServiceEvents;
const web = lbService('default/web');
const labelled = (name: string): ExcludedNode => ({ node: nodeName(name), reason: 'label' });
const reasons = (): readonly string[] => recorded.map(({ type, reason }) => `${type} ${reason}`);
/** The Service as it is once a controller has written its condition. */
const showing = (reason: string, message: string): LoadBalancerService => {
  const condition = { type: 'lb.switchyard.dev/Ready', status: 'True', reason, message };
  return lbService('default/web', { status: { conditions: [{ ...condition, lastTransitionTime: '' as never }] } });
};

beforeEach(() => {
  recorded = [];
  events = new ServiceEvents({ record: (event) => void recorded.push(event) });
});

describe('nodes that are left out', () => {
  test('are reported once, and again when others are', () => {
    events.nodes(web, [labelled('a')], true);
    events.nodes(web, [labelled('a')], true);
    events.nodes(web, [labelled('a'), labelled('b')], true);
    expect(reasons()).toEqual(['Normal LoadBalancerNodesExcluded', 'Normal LoadBalancerNodesExcluded']);
    expect(recorded[1]?.note).toContain('a (label ');
    expect(recorded[1]?.note).toContain('b (label ');
  });
  test('are nothing to speak of when there are none, or no more', () => {
    events.nodes(web, [], true);
    events.nodes(web, [labelled('a')], true);
    events.nodes(web, [], true);
    expect(reasons()).toEqual(['Normal LoadBalancerNodesExcluded']);
    events.nodes(web, [labelled('a')], true);
    expect(recorded).toHaveLength(2);
  });
  test('are a warning when no other is left', () => {
    events.nodes(web, [labelled('a')], false);
    expect(reasons()).toEqual(['Warning LoadBalancerNodesExcluded', 'Warning UnAvailableLoadBalancer']);
    events.nodes(web, [labelled('a')], true);
    expect(reasons().slice(2)).toEqual(['Normal LoadBalancerNodesExcluded']);
  });
  test.each<[why: string, excluded: ExcludedNode, text: string]>([
    ['a label', labelled('a'), 'a (label node.kubernetes.io/exclude-from-external-load-balancers)'],
    ['a taint', { node: nodeName('a'), reason: 'taint' }, 'a (taint ToBeDeletedByClusterAutoscaler)'],
    ['deletion', { node: nodeName('a'), reason: 'beingDeleted' }, 'a (being deleted)'],
    ['no address', { node: 'a' as NodeName, reason: 'noAddress', ipFamily: 'IPv6' }, 'a (no IPv6 address)'],
  ])('because of %s are reported with the reason', (_, excluded, text) => {
    events.nodes(web, [excluded], true);
    expect(recorded[0]?.note).toContain(text);
  });
});

test('wrong configuration is reported once, again when it is wrong otherwise, and again after it was right', () => {
  const wrong = (value: string): Parameters<ServiceEvents['problems']>[1] => [
    { kind: 'annotation', name: 'lb.switchyard.dev/path', value, fault: 'it must be proxy or transparent' },
  ];
  for (const value of ['x', 'x', 'y']) events.problems(web, wrong(value), 'kind');
  events.problems(web, [], 'kind');
  events.problems(web, wrong('x'), 'kind');
  expect(reasons()).toEqual(Array.from({ length: 3 }, () => 'Warning InvalidConfiguration'));
});

test('problems in the condition were reported by an earlier controller', () => {
  const shown = `profile; left out: ${excludedNodesText([labelled('a')])}; more`;
  events.nodes(showing('Serving', shown), [labelled('a')], true);
  expect(recorded).toEqual([]);
  events.nodes(showing('Serving', shown), [labelled('a')], false);
  expect(reasons()).toEqual(['Warning LoadBalancerNodesExcluded', 'Warning UnAvailableLoadBalancer']);
});

test('a Service that was made anew gets every Event', () => {
  events.nodes(web, [labelled('a')], true);
  events.forget(web);
  events.nodes(web, [labelled('a')], true);
  expect(recorded).toHaveLength(2);
});

test('they are about the Service, by its uid', () => {
  events.step({ ...web, uid: 'abc' }, 'ensuring');
  expect(recorded[0]?.regarding).toEqual({ kind: 'Service', namespace: 'default', name: 'web', uid: 'abc' });
});
