import type { HookDescription, Rule, TableItem } from './rules/model.ts';

/** Something the rules cannot do without. */
export interface RuleFeature {
  /** As an operator would look it up. */
  readonly name: string;
  /** Who has it, where that is known. */
  readonly since: string;
  /** Content of a table that needs it, and as little else as possible. */
  readonly items: readonly TableItem[];
}

function chain(at: HookDescription['at'], priority: number, rules: readonly Rule[]): readonly TableItem[] {
  return [{ kind: 'chain', name: 'c', hook: { type: 'nat', at, priority }, rules }];
}

/** Kernel features that the rules need, each on its own: after a refusal each is tried, to name the missing ones. */
export const ruleFeatures: readonly RuleFeature[] = [
  { name: 'NAT in inet tables', since: 'Linux 5.2 with CONFIG_NFT_NAT', items: chain('prerouting', -100, []) },
  {
    name: 'reject in prerouting chains',
    since: 'Linux 5.9 with CONFIG_NFT_REJECT_INET',
    items: chain('prerouting', -100, [[{ kind: 'reject', with: 'any' }]]),
  },
  {
    name: 'local addresses as a condition (nft_fib)',
    since: 'Linux 4.10 with CONFIG_NFT_FIB_INET',
    items: chain('prerouting', -100, [[{ kind: 'isLocal', address: 'daddr' }, { kind: 'drop' }]]),
  },
  {
    name: 'masquerading (nft_masq)',
    since: 'Linux 5.2 with CONFIG_NFT_MASQ',
    items: chain('postrouting', 100, [[{ kind: 'masquerade' }]]),
  },
  {
    name: 'random numbers in keys of maps (nft_numgen)',
    since: 'Linux 4.9 with CONFIG_NFT_NUMGEN',
    items: [
      {
        kind: 'map',
        name: 'm',
        key: ['meta priority', 'numgen random mod 2'],
        data: ['ip daddr', 'th dport'],
      },
      ...chain('prerouting', -100, [
        [{ kind: 'dnat', ip: 'ip', fields: ['meta priority', 'numgen random mod 2'], map: 'm' }],
      ]),
    ],
  },
  {
    name: 'ranges as a part of keys of sets',
    since: 'Linux 5.6',
    items: [{ kind: 'set', name: 's', key: ['ip daddr', 'meta l4proto', 'th dport', 'ip saddr'], flags: ['interval'] }],
  },
  {
    name: 'intervals of interface names in sets',
    since: 'Linux 4.1',
    items: [{ kind: 'set', name: 's', key: ['iifname'], flags: ['interval'] }],
  },
  {
    name: 'counters in elements of maps',
    since: 'Linux 5.7',
    items: [{ kind: 'map', name: 'm', key: ['meta l4proto', 'th dport'], data: ['meta priority'], counter: true }],
  },
  {
    name: 'sets that rules fill',
    since: 'Linux 5.7',
    items: [
      { kind: 'set', name: 's', key: ['meta priority'], size: 16, flags: ['dynamic'], counter: true },
      { kind: 'chain', name: 'c', rules: [[{ kind: 'count', fields: ['meta priority'], set: 's' }]] },
    ],
  },
];
