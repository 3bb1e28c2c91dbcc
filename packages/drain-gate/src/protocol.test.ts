import { millis, parseIp, type Protocol, type ServiceKey } from '@switchyard/core';
import { expect, test } from 'vitest';
import {
  connectionsQuery,
  type CountedPod,
  maxServices,
  nodeQuery,
  type NodeQuestion,
  openText,
  parseConnectionsQuery,
  parseNodeQuery,
} from './protocol.ts';

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

const addresses = [parseIp('10.244.1.5'), parseIp('fd00::5')];

test.each<CountedPod>([
  { addresses, ports: new Map() },
  {
    addresses,
    ports: new Map<Protocol, ReadonlySet<number>>([
      ['TCP', new Set([80, 443])],
      ['UDP', new Set([53])],
    ]),
  },
  { addresses: addresses.slice(1), ports: new Map<Protocol, ReadonlySet<number>>([['SCTP', new Set([9])]]) },
])('the pod of a count is read as it was written: %j', (pod) => {
  expect(parseConnectionsQuery(connectionsQuery(pod))).toEqual(pod);
});

test('open connections have the name of their protocol', () => {
  expect(openText({ SCTP: 1, TCP: 0 })).toBe('0 TCP connections, 1 SCTP associations');
  expect(openText({ UDP: 2 })).toBe('2 UDP flows');
});
