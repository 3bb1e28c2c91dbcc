/** Something the rules cannot do without. */
export interface RuleFeature {
  /** As an operator would look it up. */
  readonly name: string;
  /** Who has it, where that is known. */
  readonly since: string;
  /** The body of a table that needs it, and as little else as possible. */
  readonly rules: string;
}

/** What the rules need of nft and the kernel, each on its own, to say what is missing when they are refused. */
export const ruleFeatures: readonly RuleFeature[] = [
  {
    name: 'NAT in inet tables',
    since: 'Linux 5.2',
    rules: 'chain c { type nat hook prerouting priority -100; }',
  },
  {
    name: 'reject in prerouting chains',
    since: 'Linux 5.9',
    rules: 'chain c { type nat hook prerouting priority -100; reject; }',
  },
  {
    name: 'local addresses as a condition (nft_fib)',
    since: 'Linux 4.10 with CONFIG_NFT_FIB_INET',
    rules: 'chain c { type nat hook prerouting priority -100; fib daddr type local drop; }',
  },
  {
    name: 'masquerading (nft_masq)',
    since: 'Linux 5.2 with CONFIG_NFT_MASQ',
    rules: 'chain c { type nat hook postrouting priority 100; masquerade fully-random; }',
  },
  {
    name: 'random numbers in keys of maps (nft_numgen)',
    since: 'Linux 4.9 with CONFIG_NFT_NUMGEN, nft 1.0.1',
    rules: 'map m { typeof meta priority . numgen random mod 2 : ip daddr . th dport; }',
  },
  {
    name: 'ranges as a part of keys of sets',
    since: 'Linux 5.6',
    rules: 'set s { typeof ip daddr . meta l4proto . th dport . ip saddr; flags interval; }',
  },
  {
    name: 'intervals of interface names in sets',
    since: 'nft 1.0.6 at the latest',
    rules: 'set s { typeof iifname; flags interval; }',
  },
  {
    name: 'counters in elements of maps',
    since: 'Linux 5.7, nft 1.0.1',
    rules: 'map m { typeof meta l4proto . th dport : meta priority; counter; }',
  },
  {
    name: 'sets that rules fill',
    since: 'Linux 5.7, nft 1.0.1',
    rules: 'set s { typeof meta priority; size 16; flags dynamic; counter; }\nchain c { update @s { meta priority }; }',
  },
];
