import { millis, parseIp, type ServiceKey } from '@switchyard/core';
import { expect, test } from 'vitest';
import { maxPods, nodeQuery, type NodeQuestion, parseNodeQuery } from './protocol.ts';

const cart = 'shop/cart' as ServiceKey;

test.each<NodeQuestion>([
  { after: 0, pods: [], timeout: millis(0) },
  { after: 123_456, pods: [{ address: parseIp('10.244.1.5'), service: cart }], timeout: millis(10_000) },
  { after: 7, pods: [{ address: parseIp('fd00::5'), service: cart }], timeout: millis(200) },
])('a question is read as it was written: %j', (question) => {
  expect(parseNodeQuery(nodeQuery(question))).toEqual(question);
});

test.each([
  ['after=x', /after "x" is no resourceVersion/],
  ['after=-1', /after "-1"/],
  ['seconds=61', /seconds "61" is no number from 0 to 60/],
  ['pod=10.244.1.5', /pod "10.244.1.5" is not ADDRESS,NAMESPACE\/SERVICE/],
  ['pod=10.244.1.5,cart', /is not ADDRESS/],
  ['pod=10.244.1,shop/cart', /is not ADDRESS/],
  ['version=3', /unknown parameter "version"/],
  [Array.from({ length: maxPods + 1 }, () => 'pod=10.244.1.5,shop/cart').join('&'), /101 pods are more than 100/],
])('the result for %s is its fault', (query, fault) => {
  expect(parseNodeQuery(new URLSearchParams(query))).toMatch(fault);
});
