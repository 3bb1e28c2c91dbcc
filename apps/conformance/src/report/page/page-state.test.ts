import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatHash, isBad, isFiltered, isShown, type PageState, parseHash, type RowFacts } from './page-state.ts';

const none: PageState = { words: '', statuses: '', tag: '', only: '', caseId: '', proxy: '' };

test('an address names the case and the proxy', () => {
  const state = { ...none, caseId: 'matrix/nodePort/Local/none/ipv4', proxy: 'iptables-nft/dual' };
  expect(formatHash(state)).toBe('case=matrix/nodePort/Local/none/ipv4&proxy=iptables-nft/dual');
  expect(parseHash('#case=a/b&proxy=c')).toEqual({ ...none, caseId: 'a/b', proxy: 'c' });
  expect(parseHash('')).toEqual(none);
  expect(formatHash(none)).toBe('');
});

test('every state comes back from its address', () => {
  const text = fc.string({ unit: 'grapheme' });
  const any = fc.record({ words: text, statuses: text, tag: text, only: text, caseId: text, proxy: text });
  fc.assert(
    fc.property(any, (state) => {
      expect(parseHash(`#${formatHash(state)}`)).toEqual(state);
    }),
  );
});

const row: RowFacts = {
  text: 'scenario/etp-local/ipv4\nlocal is reached\nudp',
  tags: ['scenario', 'udp'],
  marks: ['p', 'f~', '-'],
  differs: true,
};

test.each<{ filter: Partial<PageState>; column?: number; shown: boolean }>([
  { filter: {}, shown: true },
  { filter: { words: 'ETP reached' }, shown: true },
  { filter: { words: 'etp missing' }, shown: false },
  { filter: { tag: 'udp' }, shown: true },
  { filter: { tag: 'ud' }, shown: false },
  { filter: { statuses: 'f' }, shown: true },
  { filter: { statuses: '~' }, shown: true },
  { filter: { statuses: 'e' }, shown: false },
  { filter: { statuses: 'ep' }, shown: true },
  { filter: { statuses: 'd' }, shown: true },
  { filter: { statuses: 'f' }, column: 0, shown: false },
  { filter: { statuses: 'f' }, column: 1, shown: true },
  { filter: {}, column: 2, shown: false },
])('$filter in column $column shows the row: $shown', ({ filter, column = -1, shown }) => {
  expect(isShown(row, { ...none, ...filter }, column)).toBe(shown);
});

test('a row is bad if any column is, and a filter is one if anything but the details is chosen', () => {
  expect(isBad(row)).toBe(true);
  expect(isBad({ ...row, marks: ['p', 's', '-'] })).toBe(false);
  expect(isFiltered({ ...none, caseId: 'a', proxy: 'b' })).toBe(false);
  expect(isFiltered({ ...none, words: ' ' })).toBe(false);
  expect(isFiltered({ ...none, only: 'a' })).toBe(true);
});
