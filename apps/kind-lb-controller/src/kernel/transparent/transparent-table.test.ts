import { describe, expect, test } from 'vitest';
import type { RenderedTransparent } from './render-transparent.ts';
import { cleaningScript, isLoaded, loadingScript, parseTransparent } from './transparent-table.ts';

const wanted: RenderedTransparent = {
  body: '  map nodes4-2 { ... }\n',
  chains: ['send4', 'ingress-eth0'],
  maps: ['nodes4-2', 'flows-a', 'fragments4'],
  digest: '00ff',
};
const table = [
  'table netdev switchyard-lb {',
  '  chain loaded {',
  '    return comment "v1 00ff"',
  '  }',
  '  map nodes4-2 { ... }',
  '}\n',
].join('\n');

test('a first load makes the table', () => {
  expect(loadingScript(undefined, wanted)).toBe(table);
  expect(cleaningScript(undefined, wanted)).toBe('');
});

test('a later load replaces rules; a second transaction deletes what only the old ones used, maps before chains', () => {
  const found = {
    digest: '1234',
    chains: ['send4', 'in-gone', 'ingress-eth0'],
    maps: ['nodes4-1', 'flows-a', 'flows-gone', 'fragments4'],
  };
  expect(loadingScript(found, wanted)).toBe(`flush table netdev switchyard-lb\n${table}`);
  expect(cleaningScript(found, wanted)).toBe(
    [
      'delete map netdev switchyard-lb nodes4-1',
      'delete map netdev switchyard-lb flows-gone',
      'delete chain netdev switchyard-lb in-gone\n',
    ].join('\n'),
  );
});

test('a table that is not as we write it is replaced', () => {
  const found = { digest: undefined, chains: ['x'], maps: [] };
  expect(loadingScript(found, wanted)).toBe(`delete table netdev switchyard-lb\n${table}`);
  expect(cleaningScript(found, wanted)).toBe('');
});

test('without transparent ports the table goes', () => {
  const found = { digest: '1', chains: [], maps: ['nodes4-1'] };
  expect(loadingScript(found, undefined)).toBe('delete table netdev switchyard-lb\n');
  expect(cleaningScript(found, undefined)).toBe('');
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
    { what: 'a map of earlier rules is there', found: { ...found, maps: ['nodes4-1'] }, wanted, is: false },
    { what: 'there is no table', found: undefined, wanted, is: false },
    { what: 'an unwanted table is there', found, wanted: undefined, is: false },
    { what: 'nothing is there, nothing is wanted', found: undefined, wanted: undefined, is: true },
  ])('$what: $is', (row) => {
    expect(isLoaded(row.found, row.wanted)).toBe(row.is);
  });
});
