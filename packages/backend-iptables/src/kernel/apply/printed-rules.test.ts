import { expect, test } from 'vitest';
import { type ChainKey, chainKey } from './change.ts';
import { KernelState } from './kernel-state.ts';
import { hashRules } from './rule-hash.ts';
import { PrintedRules } from './printed-rules.ts';

function holding(rule: string): KernelState {
  const state = new KernelState();
  state.setList('nat', 'C', { counts: new Map([[rule, 1]]), tail: undefined });
  return state;
}

function learned(written: string, found: string): string {
  const spellings = new PrintedRules();
  const key: ChainKey = chainKey('nat', 'C');
  spellings.learn(holding(written), holding(found), new Map([[key, hashRules([found])]]));
  return spellings.rule('nat', 'C', found);
}

const written = '-s 10.0.0.1/32 ! -d 10.0.0.2/32 -p tcp -m comment --comment "a -d b" -m tcp --dport 80 -j X';

test.each([
  ['options in another order', '! -d 10.0.0.2/32 -s 10.0.0.1/32 -p tcp --dport 80 -m comment --comment "a -d b" -j X'],
  ['no name of an extension', '-s 10.0.0.1/32 ! -d 10.0.0.2/32 -p tcp --comment "a -d b" --dport 80 -j X'],
])('%s is the same rule', (_, found) => {
  expect(learned(written, found)).toBe(written);
});

test.each([
  ['two addresses changed places', written.replace('0.1/', '0.3/').replace('0.2/', '0.1/').replace('0.3/', '0.2/')],
  ['another option is negated', written.replace('! -d', '-d').replace('-s', '! -s')],
  ['a comment has its words in another order', written.replace('"a -d b"', '"b -d a"')],
])('when %s it is another rule', (_, found) => {
  expect(learned(written, found)).toBe(found);
});
