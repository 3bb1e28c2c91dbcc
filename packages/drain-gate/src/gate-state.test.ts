import type { ClusterEvent } from '@switchyard/core';
import { slice } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { GateState } from './gate-state.ts';
import { cartEvent, lists, pod } from './testing/cluster.ts';

function stateOf(...events: readonly ClusterEvent[]): GateState {
  const state = new GateState();
  state.apply([...lists, ...events]);
  return state;
}

test('it is in sync with a list of Nodes and one of EndpointSlices', () => {
  const state = new GateState();
  for (const event of lists) {
    expect(state.isInSync).toBe(false);
    state.apply([event]);
  }
  expect(state.isInSync).toBe(true);
});

test.each([
  ['ready', {}, false],
  ['terminating', { terminating: true }, true],
  ['not ready', { ready: false }, true],
  ['ready and terminating, as with publishNotReadyAddresses', { ready: true, terminating: true }, true],
] as const)('an endpoint that is %s', (_, conditions, isEnding) => {
  expect(stateOf(cartEvent(105, conditions)).endpointsOf([pod])).toEqual({
    served: [{ address: pod, service: 'shop/cart' }],
    version: 105,
    isEnding,
    nodeName: 'n1',
    ports: new Set([8080]),
  });
});

test('the newest slice of all Services decides, and each must say that the pod ends', () => {
  const item = slice('shop/pay', { endpoints: [{ ip: pod, node: 'n1' }] });
  const other: ClusterEvent = { kind: 'upsert', resource: 'EndpointSlice', resourceVersion: 107, item };
  const state = stateOf(other, cartEvent(105, { terminating: true }));
  expect(state.endpointsOf([pod])).toMatchObject({ version: 107, isEnding: false });
  state.apply([{ kind: 'delete', resource: 'EndpointSlice', resourceVersion: 109, name: item.key }]);
  expect(state.endpointsOf([pod])).toMatchObject({ version: 105, isEnding: true });
});

test('a pod in no slice ends, and nodes must know what removed it', () => {
  const state = stateOf(cartEvent(105), cartEvent(106, 'gone'));
  expect(state.endpointsOf([pod])).toMatchObject({ served: [], version: 106, isEnding: true, nodeName: undefined });
});

test('the version of a list is the version of no slice', () => {
  const [, second] = lists;
  const item = slice('shop/cart', { endpoints: [{ ip: pod, node: 'n1', terminating: true }] });
  const state = stateOf({ ...second, items: [item] } as ClusterEvent);
  expect(state.endpointsOf([pod])).toMatchObject({ version: 0, isEnding: true });
  state.apply([{ ...second, resourceVersion: 300, items: [] } as ClusterEvent]);
  expect(state.endpointsOf([pod])).toMatchObject({ served: [], version: 0 });
});

test('Nodes follow their events', () => {
  const state = stateOf({ kind: 'delete', resource: 'Node', name: 'n2' });
  expect([...state.nodes.keys()]).toEqual(['n1']);
});
