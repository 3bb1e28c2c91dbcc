import { type ClusterEvent, type IpAddress, parseIp } from '@switchyard/core';
import { type EndpointSpec, node, slice } from '@switchyard/core/testing';

/** The pod of the tests, on node n1. */
export const pod: IpAddress = parseIp('10.244.1.5');

/** An EndpointSlice of shop/cart at a version: the pod, unless `conditions` is `gone`, and one more on n2. */
export function cartEvent(resourceVersion: number, conditions: Omit<EndpointSpec, 'ip'> | 'gone' = {}): ClusterEvent {
  const own = conditions === 'gone' ? [] : [{ ip: pod, node: 'n1', ...conditions }];
  const item = slice('shop/cart', { endpoints: [...own, { ip: '10.244.2.6', node: 'n2' }] });
  return { kind: 'upsert', resource: 'EndpointSlice', resourceVersion, item };
}

/** Lists of two nodes and no slice. */
export const lists: readonly ClusterEvent[] = [
  { kind: 'replace', resource: 'Node', items: [node('n1'), node('n2')] },
  { kind: 'replace', resource: 'EndpointSlice', resourceVersion: 100, items: [] },
];
