import { describe, expect, test } from 'vitest';
import { millis } from '../../base/time.ts';
import { node, replaceAll, service, serviceCidr, slice } from '../../testing/index.ts';
import { nodeName, serviceKey } from '../records/keys.ts';
import type { ClusterEvent } from './cluster-event.ts';
import {
  ClusterState,
  dirtyServices,
  everythingDirty,
  isNothingDirty,
  mergeDirty,
  nothingDirty,
} from './cluster-state.ts';

const base = {
  services: [service('ns/a'), service('ns/b', { clusterIps: ['10.96.0.11'] })],
  slices: [slice('ns/a', { endpoints: ['10.244.1.1'] }), slice('ns/b', { endpoints: ['10.244.1.2'] })],
  nodes: [node('n1', { zone: 'a', addresses: ['192.0.2.1'] }), node('n2', { zone: 'a' })],
  serviceCidrs: [serviceCidr('kubernetes', '10.96.0.0/16')],
};

function listedState(): ClusterState {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply(replaceAll(base));
  return state;
}

describe('what an event makes dirty', () => {
  const relisted: readonly ClusterEvent[] = replaceAll(structuredClone(base));
  test.each<readonly [string, readonly ClusterEvent[], readonly string[] | 'everything']>([
    ['a new Service', [{ kind: 'upsert', resource: 'Service', item: service('ns/c') }], ['ns/c']],
    [
      'a changed Service',
      [{ kind: 'upsert', resource: 'Service', item: service('ns/a', { internal: 'Local' }) }],
      ['ns/a'],
    ],
    [
      'fact 47: a Service equal to what is stored',
      [{ kind: 'upsert', resource: 'Service', item: service('ns/a') }],
      [],
    ],
    ['a deleted Service', [{ kind: 'delete', resource: 'Service', name: 'ns/a' }], ['ns/a']],
    ['a deletion of an unknown Service', [{ kind: 'delete', resource: 'Service', name: 'ns/x' }], []],
    ['a changed slice', [{ kind: 'upsert', resource: 'EndpointSlice', item: slice('ns/a') }], ['ns/a']],
    [
      'fact 47: a slice equal to what is stored',
      [
        {
          kind: 'upsert',
          resource: 'EndpointSlice',
          item: slice('ns/a', { endpoints: ['10.244.1.1'] }),
        },
      ],
      [],
    ],
    [
      'a slice of a Service that is not there',
      [{ kind: 'upsert', resource: 'EndpointSlice', item: slice('ns/x') }],
      ['ns/x'],
    ],
    [
      'a slice that moves to another Service',
      [{ kind: 'upsert', resource: 'EndpointSlice', item: slice('ns/b', { name: 'a-1', endpoints: ['10.244.1.1'] }) }],
      ['ns/a', 'ns/b'],
    ],
    ['a deleted slice', [{ kind: 'delete', resource: 'EndpointSlice', name: 'ns/a-1' }], ['ns/a']],
    ['a deletion of an unknown slice', [{ kind: 'delete', resource: 'EndpointSlice', name: 'ns/x-1' }], []],
    [
      "fact 48: our own Node's zone",
      [{ kind: 'upsert', resource: 'Node', item: node('n1', { zone: 'b', addresses: ['192.0.2.1'] }) }],
      'everything',
    ],
    [
      "our own Node's address",
      [{ kind: 'upsert', resource: 'Node', item: node('n1', { zone: 'a', addresses: ['192.0.2.9'] }) }],
      'everything',
    ],
    ['our own Node, gone', [{ kind: 'delete', resource: 'Node', name: 'n1' }], 'everything'],
    [
      "fact 48: our own Node's eligibility",
      [{ kind: 'upsert', resource: 'Node', item: { ...base.nodes[0]!, isEligible: false } }],
      [],
    ],
    ["another Node's zone", [{ kind: 'upsert', resource: 'Node', item: node('n2', { zone: 'b' }) }], []],
    [
      'fact 49: a new ServiceCIDR',
      [{ kind: 'upsert', resource: 'ServiceCIDR', item: serviceCidr('more', '10.97.0.0/16') }],
      'everything',
    ],
    [
      'a ServiceCIDR that adds no range',
      [{ kind: 'upsert', resource: 'ServiceCIDR', item: serviceCidr('same', '10.96.0.0/16') }],
      [],
    ],
    ['fact 49: a deleted ServiceCIDR', [{ kind: 'delete', resource: 'ServiceCIDR', name: 'kubernetes' }], 'everything'],
    ['a relist that finds everything as it was', relisted, []],
    [
      'a relist of Services that lacks one',
      [{ kind: 'replace', resource: 'Service', items: [service('ns/a')] }],
      ['ns/b'],
    ],
    [
      'a relist of slices that lacks one',
      [{ kind: 'replace', resource: 'EndpointSlice', items: base.slices.slice(1) }],
      ['ns/a'],
    ],
    ['an empty batch', [], []],
  ])('%s', (_, batch, expected) => {
    const dirty = listedState().apply(batch);
    expect(dirty.everything).toBe(expected === 'everything');
    expect([...dirty.services].sort()).toEqual(expected === 'everything' ? [] : expected);
  });
});

test('a slice whose trigger time alone differs is stored and makes nothing dirty', () => {
  const state = listedState();
  const later = { ...base.slices[0]!, lastChangeTriggerTime: millis(5000) };
  expect(isNothingDirty(state.apply([{ kind: 'upsert', resource: 'EndpointSlice', item: later }]))).toBe(true);
  expect([...state.slicesOf(serviceKey('ns', 'a'))]).toEqual([later]);
});

test('is in sync once every resource was listed in full, not before', () => {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply([{ kind: 'upsert', resource: 'Service', item: service('ns/a') }]);
  expect(state.missingResources).toEqual(['Service', 'EndpointSlice', 'Node', 'ServiceCIDR']);
  for (const event of replaceAll({})) {
    expect(state.isInSync).toBe(false);
    state.apply([event]);
  }
  expect(state.isInSync).toBe(true);
  expect(state.missingResources).toEqual([]);
});

test('a relist never empties first: what stays is the very record that was there', () => {
  const state = listedState();
  const before = state.services.get(serviceKey('ns', 'a'));
  state.apply(replaceAll(structuredClone(base)));
  expect(state.services.get(serviceKey('ns', 'a'))).toBe(before);
});

test('of two records with one key in a list, the later counts', () => {
  const state = listedState();
  const items = [service('ns/a'), service('ns/a', { internal: 'Local' })];
  state.apply([{ kind: 'replace', resource: 'Service', items }]);
  expect(state.services.get(serviceKey('ns', 'a'))?.internalTrafficPolicy).toBe('Local');
});

test('a Service keeps all its slices, and loses them one by one', () => {
  const state = listedState();
  const key = serviceKey('ns', 'a');
  const more = slice('ns/a', { name: 'a-2', endpoints: ['10.244.1.9'] });
  state.apply([{ kind: 'upsert', resource: 'EndpointSlice', item: more }]);
  expect([...state.slicesOf(key)].map((item) => item.key).sort()).toEqual(['ns/a-1', 'ns/a-2']);
  state.apply([{ kind: 'delete', resource: 'EndpointSlice', name: 'ns/a-1' }]);
  expect([...state.slicesOf(key)]).toEqual([more]);
  state.apply([{ kind: 'delete', resource: 'EndpointSlice', name: 'ns/a-2' }]);
  expect([...state.slicesOf(key)]).toEqual([]);
});

test('ranges of several ServiceCIDRs come once each, in text order', () => {
  const state = listedState();
  state.apply([
    {
      kind: 'upsert',
      resource: 'ServiceCIDR',
      item: serviceCidr('more', '10.97.0.0/16', '10.96.0.0/16', '10.0.0.0/24'),
    },
  ]);
  expect(state.serviceCidrs).toEqual(['10.0.0.0/24', '10.96.0.0/16', '10.97.0.0/16']);
});

test('dirt is merged without losing any', () => {
  const a = { services: new Set([serviceKey('ns', 'a')]), everything: false };
  const b = { services: new Set([serviceKey('ns', 'b')]), everything: false };
  expect(mergeDirty(nothingDirty, a)).toBe(a);
  expect(mergeDirty(a, nothingDirty)).toBe(a);
  expect([...mergeDirty(a, b).services]).toEqual(['ns/a', 'ns/b']);
  expect(dirtyServices(mergeDirty(a, b))).toEqual(new Set(['ns/a', 'ns/b']));
  expect(dirtyServices(mergeDirty(a, everythingDirty))).toBe('all');
});
