import { expect, test } from 'vitest';
import { KernelState } from './apply/kernel-state.ts';
import { hashRules } from './apply/rule-hash.ts';
import type { RuleText, TableName } from '../render/chains.ts';
import { compareStates } from './compare-states.ts';

const svc = 'KUBE-SVC-ABCDEFGHIJKLMN23';

/** Chains by table and name. Those of the second kind are edited rule by rule. */
interface Content {
  readonly chains?: Readonly<Record<string, readonly RuleText[]>>;
  readonly lists?: Readonly<Record<string, readonly RuleText[]>>;
  readonly tail?: readonly RuleText[] | undefined;
}

function stateOf({ chains = {}, lists = {}, ...more }: Content): KernelState {
  const state = new KernelState();
  for (const [key, rules] of Object.entries(chains)) state.setHash(...placeOf(key), hashRules(rules));
  for (const [key, rules] of Object.entries(lists)) {
    const counts = new Map<RuleText, number>();
    for (const rule of rules) counts.set(rule, (counts.get(rule) ?? 0) + 1);
    state.setList(...placeOf(key), { counts, tail: 'tail' in more ? more.tail : [] });
  }
  return state;
}

function placeOf(key: string): [table: TableName, name: string] {
  const [table, name = ''] = key.split(' ');
  return [table as TableName, name];
}

const jump = '-m comment --comment "kubernetes service portals" -j KUBE-SERVICES';
const foreign = '-m comment --comment "not -j KUBE-SERVICES" -j CNI-HOSTPORT-DNAT';

test.each<[string, Content, Content, readonly string[]]>([
  ['nothing', { chains: { [`nat ${svc}`]: ['-j A'] } }, { chains: { [`nat ${svc}`]: ['-j A'] } }, []],
  [
    'an altered rule',
    { chains: { [`nat ${svc}`]: ['-j A'] } },
    { chains: { [`nat ${svc}`]: ['-j B'] } },
    [`nat ${svc} changed`],
  ],
  ['a missing chain', { chains: { [`nat ${svc}`]: ['-j A'] } }, {}, [`nat ${svc} missing`]],
  ['a chain more', {}, { chains: { [`nat ${svc}`]: [] } }, [`nat ${svc} added`]],
  [
    'the same chain of another table',
    { chains: { 'nat KUBE-PROXY-CANARY': [] } },
    { chains: { 'filter KUBE-PROXY-CANARY': [] } },
    ['nat KUBE-PROXY-CANARY missing', 'filter KUBE-PROXY-CANARY added'],
  ],
  ['our mark that aged', { chains: { 'mangle SWITCHYARD': ['1'] } }, { chains: { 'mangle SWITCHYARD': ['2'] } }, []],
  ['a missing birthmark', { chains: { 'mangle SWITCHYARD': ['1'] } }, {}, ['mangle SWITCHYARD missing']],
  [
    'an entry of a shared chain',
    { lists: { 'nat KUBE-SERVICES': ['-j A', '-j B'] } },
    { lists: { 'nat KUBE-SERVICES': ['-j A'] } },
    ['nat KUBE-SERVICES changed'],
  ],
  [
    'an entry more',
    { lists: { 'nat KUBE-SERVICES': ['-j A'] } },
    { lists: { 'nat KUBE-SERVICES': ['-j A', '-j A'] } },
    ['nat KUBE-SERVICES changed'],
  ],
  [
    'what stood last',
    { lists: { 'nat KUBE-SERVICES': ['-j A'] } },
    { lists: { 'nat KUBE-SERVICES': ['-j A'] }, tail: undefined },
    ['nat KUBE-SERVICES changed'],
  ],
  ['a missing shared chain', { lists: { 'nat KUBE-SERVICES': [] } }, {}, ['nat KUBE-SERVICES missing']],
  [
    'a jump to us',
    { lists: { 'nat PREROUTING': [jump, foreign] } },
    { lists: { 'nat PREROUTING': [foreign] } },
    ['nat PREROUTING changed'],
  ],
  [
    'a jump to us more',
    { lists: { 'nat PREROUTING': [jump] } },
    { lists: { 'nat PREROUTING': [jump, jump] } },
    ['nat PREROUTING changed'],
  ],
  ['a jump of others', { lists: { 'nat PREROUTING': [jump, foreign] } }, { lists: { 'nat PREROUTING': [jump] } }, []],
  [
    'a jump of others more',
    { lists: { 'nat PREROUTING': [jump] } },
    { lists: { 'nat PREROUTING': [jump, foreign] } },
    [],
  ],
  [
    'our rule in the firewall of the kubelet',
    { lists: { 'filter KUBE-FIREWALL': ['-j DROP'] } },
    { lists: { 'filter KUBE-FIREWALL': [] } },
    ['filter KUBE-FIREWALL changed'],
  ],
  [
    "a rule of the kubelet's more",
    { lists: { 'filter KUBE-FIREWALL': ['-j DROP'] } },
    { lists: { 'filter KUBE-FIREWALL': ['-j DROP', '-p sctp -j DROP'] } },
    [],
  ],
])('finds %s', (_, left, found, differences) => {
  const words = compareStates(stateOf(left), stateOf(found)).map(
    ({ table, chain, what }) => `${table} ${chain} ${what}`,
  );
  expect(words).toEqual(differences);
});
