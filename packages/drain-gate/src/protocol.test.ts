import { millis, type ServiceKey } from '@switchyard/core';
import { expect, test } from 'vitest';
import { maxServices, nodeQuery, type NodeQuestion, parseNodeQuery } from './protocol.ts';

const cart = 'shop/cart' as ServiceKey;

test.each<NodeQuestion>([
  { after: 0, services: [], timeout: millis(0) },
  { after: 123_456, services: [cart, 'shop/pay' as ServiceKey], timeout: millis(10_000) },
  { after: 7, services: [cart], timeout: millis(200) },
])('a question is read as it was written: %j', (question) => {
  expect(parseNodeQuery(nodeQuery(question))).toEqual(question);
});

test.each([
  ['after=x', /after "x" is no resourceVersion/],
  ['after=-1', /after "-1"/],
  ['seconds=61', /seconds "61" is no number from 0 to 60/],
  ['service=cart', /service "cart" is not NAMESPACE\/NAME/],
  ['service=shop/cart/x', /is not NAMESPACE/],
  ['version=3', /unknown parameter "version"/],
  [Array.from({ length: maxServices + 1 }, () => 'service=shop/cart').join('&'), /101 services are more than 100/],
])('the result for %s is its fault', (query, fault) => {
  expect(parseNodeQuery(new URLSearchParams(query))).toMatch(fault);
});
