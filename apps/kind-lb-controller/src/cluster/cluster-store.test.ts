import type { ClusterEvent, EndpointSliceRecord } from '@switchyard/core';
import { beforeEach, describe, expect, test } from 'vitest';
import { lbNode, lbService } from '../testing/builders.ts';
import { lbSlice } from '../testing/plan-input.ts';
import { concernsLoadBalancers, type LoadBalancerService } from './cluster-objects.ts';
import { type ClusterChange, ClusterStore, isInSync, type ResourceEvent } from './cluster-store.ts';

let store: ClusterStore;
beforeEach(() => {
  store = new ClusterStore();
});

const reported = (change: ClusterChange | undefined): unknown =>
  change?.kind === 'services' ? [...change.keys].sort() : change?.kind;
const services = (event: ResourceEvent<LoadBalancerService>): unknown =>
  reported(store.takeServices(event, concernsLoadBalancers));
const listed = (...items: readonly LoadBalancerService[]): unknown => services({ kind: 'replace', items });
const slice = (item: EndpointSliceRecord): unknown =>
  reported(store.takeSlices({ kind: 'upsert', resource: 'EndpointSlice', item }));
const slicesListed = (...items: readonly EndpointSliceRecord[]): unknown =>
  reported(store.takeSlices({ kind: 'replace', resource: 'EndpointSlice', items } satisfies ClusterEvent));
const web = lbService('default/web');
const internal = lbService('default/internal', { spec: { type: 'ClusterIP' } });

test('a view is in sync once everything was listed, be it empty; until then each list concerns everybody', () => {
  expect(listed()).toBe('all');
  expect(reported(store.takeNodes({ kind: 'replace', items: [] }))).toBe('all');
  expect(isInSync(store.view)).toBe(false);
  expect(slice(lbSlice('default/web', ['10.244.1.5@node1']))).toBeUndefined();
  expect(isInSync(store.view)).toBe(false);
  expect(slicesListed()).toBe('all');
  expect(isInSync(store.view)).toBe(true);
});

describe('Services', () => {
  test('that are listed again are no change, unless one was changed, added or deleted', () => {
    listed(web, lbService('default/old'), internal);
    expect(listed(web, lbService('default/old'), internal)).toBeUndefined();
    const changed = lbService('default/web', { spec: { externalTrafficPolicy: 'Local' } });
    expect(listed(changed, lbService('default/new'))).toEqual(['default/new', 'default/old', 'default/web']);
  });
  test('that never were load balancers are no change, and are not kept', () => {
    listed(web);
    expect(services({ kind: 'upsert', item: internal })).toBeUndefined();
    expect(services({ kind: 'delete', name: 'default/internal' })).toBeUndefined();
    expect([...(store.view.services?.keys() ?? [])]).toEqual(['default/web']);
  });
  test('that are deleted, or are no load balancers any more, are reported', () => {
    listed(web, lbService('default/other'));
    expect(services({ kind: 'delete', name: 'default/web' })).toEqual(['default/web']);
    const noMore = lbService('default/other', { spec: { type: 'ClusterIP' } });
    expect(services({ kind: 'upsert', item: noMore })).toEqual(['default/other']);
    expect(store.view.services?.size).toBe(0);
  });
});

describe('Nodes', () => {
  const node = lbNode('node1', ['172.18.0.11']);
  test.each([
    ['the same once more', lbNode('node1', ['172.18.0.11']), undefined],
    ['another label', lbNode('node1', ['172.18.0.11'], { metadata: { labels: { a: 'b' } } }), undefined],
    ['another address', lbNode('node1', ['172.18.0.99']), 'all'],
    ['a pod range', lbNode('node1', ['172.18.0.11'], { spec: { podCIDRs: ['10.244.1.0/24'] } }), 'all'],
    [
      'a deletion',
      lbNode('node1', ['172.18.0.11'], { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' as never } }),
      'all',
    ],
    ['another Node', lbNode('node2', ['172.18.0.12']), 'all'],
  ])('%s', (_, item, expected) => {
    store.takeNodes({ kind: 'replace', items: [node] });
    expect(reported(store.takeNodes({ kind: 'upsert', item }))).toBe(expected);
  });
  test('one that goes, and a list without changes', () => {
    store.takeNodes({ kind: 'replace', items: [node] });
    expect(reported(store.takeNodes({ kind: 'replace', items: [node] }))).toBeUndefined();
    expect(reported(store.takeNodes({ kind: 'delete', name: 'unknown' }))).toBeUndefined();
    expect(reported(store.takeNodes({ kind: 'delete', name: 'node1' }))).toBe('all');
  });
});

describe('EndpointSlices', () => {
  beforeEach(() => {
    listed(web);
    slicesListed(lbSlice('default/web', ['10.244.1.5@node1']), lbSlice('default/internal', ['10.244.1.9@node1']));
  });
  const addresses = (): unknown =>
    store.view.slices?.slicesOf(web.record.key).flatMap(({ endpoints }) => endpoints.map(({ address }) => address));

  test('that change are reported with their Service', () => {
    expect(slice(lbSlice('default/web', ['10.244.1.5@node1 terminating']))).toEqual(['default/web']);
    expect(slice(lbSlice('default/web', ['10.244.1.5@node1 terminating']))).toBeUndefined();
    expect(slice(lbSlice('default/internal', ['10.244.1.10@node1']))).toBeUndefined();
  });
  test('missing in a new list are forgotten', () => {
    expect(slicesListed(lbSlice('default/internal', ['10.244.1.9@node1']))).toEqual(['default/web']);
    expect(addresses()).toEqual([]);
  });
  test('that are deleted', () => {
    const { key } = lbSlice('default/web', ['10.244.1.5@node1']);
    expect(reported(store.takeSlices({ kind: 'delete', resource: 'EndpointSlice', name: key }))).toEqual([
      'default/web',
    ]);
    expect(addresses()).toEqual([]);
  });
});
