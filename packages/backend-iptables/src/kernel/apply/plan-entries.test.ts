import { expect, test } from 'vitest';
import type { ChainRule } from '../../render/chains.ts';
import { KernelState } from './kernel-state.ts';
import { planEntries } from './plan-entries.ts';

const entry = (rule: string, chain = 'KUBE-NODEPORTS'): ChainRule => ({ table: 'nat', chain, rule });
const counted = entry('-d 127.0.0.0/8 -p tcp --dport 30080 -m nfacct -j X');
const plain = entry('-p tcp --dport 30080 -j X');
const one = entry('-d 10.0.0.1/32 -p tcp -j X');
const two = entry('-d 10.0.0.2/32 -p tcp -j X');

test.each<[string, readonly ChainRule[], readonly ChainRule[], readonly ChainRule[], readonly string[]]>([
  ['new ones go in from the last to the first', [counted, plain], [], [], ['insert plain', 'insert counted']],
  ['what is there stays', [counted, plain], [], [counted, plain], []],
  ['one goes in before what is there', [counted, plain], [], [plain], ['insert counted']],
  ['what must stand before a new one moves', [counted, plain], [], [counted], ['insert plain', 'move counted']],
  ['not one for another address', [one, two], [], [one], ['insert two']],
  ['what is not wanted any more goes', [one], [one, two], [one, two], ['delete two']],
  ['an entry that another process deleted is not deleted again', [], [two], [], []],
])('%s', (_, wanted, had, present, expected) => {
  const state = new KernelState();
  const counts = new Map(present.map(({ rule }) => [rule, 1]));
  state.setList('nat', 'KUBE-NODEPORTS', { counts, tail: [] });
  const names = new Map(
    [counted, plain, one, two].map(({ rule }, at) => [rule, ['counted', 'plain', 'one', 'two'][at]]),
  );
  const changes = planEntries({ wanted, had, state });
  expect(changes.map((change) => `${change.kind} ${'rule' in change ? names.get(change.rule) : ''}`)).toEqual(expected);
});
