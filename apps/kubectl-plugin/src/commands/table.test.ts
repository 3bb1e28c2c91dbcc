import { expect, test } from 'vitest';
import { differencesOf } from './table.ts';

type Answers = Parameters<typeof differencesOf>[0];
const endpoint = (address: string) => ({ address, port: 8080, usedBy: [] });

function node(name: string, endpoints: readonly string[], kind = 'applied'): Answers[number] {
  const services = [{ key: 'shop/cart:http/TCP', status: { kind }, endpoints: endpoints.map(endpoint) }];
  return { node: name, families: [{ ipFamily: 'IPv4', services }] };
}

test('nodes with the same endpoints in any order agree', () => {
  expect(differencesOf([node('a', ['10.0.0.1', '10.0.0.2']), node('b', ['10.0.0.2', '10.0.0.1'])])).toEqual([]);
});

test('another endpoint, and another status, are differences', () => {
  expect(differencesOf([node('a', ['10.0.0.1']), node('b', ['10.0.0.2']), node('c', ['10.0.0.1'])])).toEqual([
    'shop/cart:http/TCP IPv4: on a, c: applied, endpoints 10.0.0.1 8080',
    'shop/cart:http/TCP IPv4: on b: applied, endpoints 10.0.0.2 8080',
  ]);
  expect(differencesOf([node('a', []), node('b', [], 'failed')])).toHaveLength(2);
});

test('a node without the Service is named', () => {
  expect(differencesOf([node('a', []), { node: 'b', families: [] }])).toEqual(['shop/cart:http/TCP IPv4: not on b']);
});
