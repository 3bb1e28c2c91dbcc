import { type ClusterEvent, parseIp } from '@switchyard/core';
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
    ports: new Map([['TCP', new Set([8080])]]),
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

test('a pod that left its last slice has its last state, and nodes must know what removed it', () => {
  const state = stateOf(cartEvent(105), cartEvent(106, 'gone'));
  const former = {
    served: [{ address: pod, service: 'shop/cart' }],
    nodeName: 'n1',
    ports: new Map([['TCP', new Set([8080])]]),
  };
  expect(state.endpointsOf([pod])).toEqual({ ...former, version: 106, isEnding: true });
  state.apply([cartEvent(108)]); // another pod with the address
  expect(state.endpointsOf([pod])).toEqual({ ...former, version: 108, isEnding: false });
});

test('a pod that was in no slice ends, and nodes must know the newest slice', () => {
  const nothing = { served: [], isEnding: true, nodeName: undefined, ports: new Map() };
  expect(stateOf(cartEvent(105)).endpointsOf([parseIp('10.244.3.3')])).toEqual({ ...nothing, version: 105 });
});

test('it remembers a bounded number of pods that left', () => {
  const state = stateOf();
  for (let index = 0; index <= 10_000; index++) {
    const ip = `10.${250 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
    const item = slice('shop/cart', { endpoints: [{ ip, node: 'n1' }] });
    state.apply([{ kind: 'upsert', resource: 'EndpointSlice', resourceVersion: 101 + index, item }]);
  }
  expect(state.endpointsOf([parseIp('10.250.0.0')]).served).toHaveLength(1);
  state.apply([cartEvent(20_000)]);
  expect(state.endpointsOf([parseIp('10.250.0.0')]).served).toEqual([]);
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
