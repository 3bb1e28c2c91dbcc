import { describe, expect, test } from 'vitest';
import type { RenderedTransparent } from './render-transparent.ts';
import { isLoaded, loadingScript, parseTransparent } from './transparent-table.ts';

const wanted: RenderedTransparent = {
  body: '  map nodes4 { ... }\n',
  chains: ['send4', 'ingress-eth0'],
  filledMaps: ['nodes4', 'buckets-2'],
  learntMaps: ['flows-a', 'fragments4'],
  digest: '00ff',
};
const table = [
  'table netdev switchyard-lb {',
  '  chain loaded {',
  '    return comment "v1 00ff"',
  '  }',
  '  map nodes4 { ... }',
  '}\n',
].join('\n');

test('a first load makes the table', () => {
  expect(loadingScript(undefined, wanted)).toBe(table);
});

test('a later load keeps learnt map entries, and removes unwanted chains and maps', () => {
  const found = {
    digest: '1234',
    chains: ['send4', 'in-gone', 'ingress-eth0'],
    maps: ['nodes4', 'buckets-1', 'flows-a', 'flows-gone', 'fragments4'],
  };
  expect(loadingScript(found, wanted)).toBe(
    [
      'flush table netdev switchyard-lb',
      'delete chain netdev switchyard-lb in-gone',
      'delete map netdev switchyard-lb buckets-1',
      'delete map netdev switchyard-lb flows-gone',
      'flush map netdev switchyard-lb nodes4',
      table,
    ].join('\n'),
  );
});

test('chains that an earlier version named otherwise are removed, and clients keep their nodes', () => {
  const found = {
    digest: '1234',
    chains: ['send4', 'greet-a', 'meet-a', 'ingress-eth0'],
    maps: ['nodes4', 'buckets-2', 'flows-a', 'clients-a'],
  };
  const now = {
    ...wanted,
    chains: ['send4', 'affinity-replace-a', 'affinity-remember-a', 'ingress-eth0'],
    learntMaps: ['flows-a', 'clients-a'],
  };
  expect(loadingScript(found, now)).toBe(
    [
      'flush table netdev switchyard-lb',
      'delete chain netdev switchyard-lb greet-a',
      'delete chain netdev switchyard-lb meet-a',
      'flush map netdev switchyard-lb nodes4',
      'flush map netdev switchyard-lb buckets-2',
      table,
    ].join('\n'),
  );
});

test('a table that is not as we write it is replaced', () => {
  const found = { digest: undefined, chains: ['x'], maps: [] };
  expect(loadingScript(found, wanted)).toBe(`delete table netdev switchyard-lb\n${table}`);
});

test('without transparent ports the table goes', () => {
  expect(loadingScript({ digest: '1', chains: [], maps: [] }, undefined)).toBe('delete table netdev switchyard-lb\n');
});

test('a listing of nft shows chains, maps and the loaded digest', () => {
  const listing = [
    'table netdev switchyard-lb {',
    '\tmap nodes4 {',
    '\t\ttypeof meta priority : ip daddr',
    '\t}',
    '',
    '\tchain loaded {',
    '\t\treturn comment "v1 89a14627bc959f71"',
    '\t}',
    '',
    '\tchain send4 {',
    '\t\tdrop',
    '\t}',
    '}',
  ].join('\n');
  expect(parseTransparent(listing)).toEqual({ digest: '89a14627bc959f71', chains: ['send4'], maps: ['nodes4'] });
  expect(parseTransparent(listing.replace('v1', 'v0')).digest).toBeUndefined();
});

describe('whether anything has to be loaded', () => {
  const found = { digest: '00ff', chains: ['send4', 'ingress-eth0'], maps: [] };
  test.each([
    { what: 'what is wanted is there', found, wanted, is: true },
    { what: 'something else is there', found: { ...found, digest: '1' }, wanted, is: false },
    { what: 'the chain of the interface is gone', found: { ...found, chains: ['send4'] }, wanted, is: false },
    { what: 'there is no table', found: undefined, wanted, is: false },
    { what: 'an unwanted table is there', found, wanted: undefined, is: false },
    { what: 'nothing is there, nothing is wanted', found: undefined, wanted: undefined, is: true },
  ])('$what: $is', (row) => {
    expect(isLoaded(row.found, row.wanted)).toBe(row.is);
  });
});
