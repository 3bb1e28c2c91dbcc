import type { IpFamily } from '@switchyard/core';
import type { TableName } from '../../render/chains.ts';

/** Something the rules cannot do without. */
export interface RuleFeature {
  /** As an operator would look it up. */
  readonly name: string;
  /** The kernel's modules, any of which may be built in. */
  readonly modules: string;
  readonly table: TableName;
  /** A rule that needs it, and as little else as possible. */
  readonly rule: (ipFamily: IpFamily) => string;
}

const isFour = (ipFamily: IpFamily): boolean => ipFamily === 'IPv4';

/** What the rules need of iptables and the kernel, each on its own, to say what is missing when they are refused. */
export const ruleFeatures: readonly RuleFeature[] = [
  {
    name: 'the table mangle',
    modules: 'iptable_mangle or nf_tables',
    table: 'mangle',
    rule: () => '-j RETURN',
  },
  {
    name: 'the table filter',
    modules: 'iptable_filter or nf_tables',
    table: 'filter',
    rule: () => '-j RETURN',
  },
  {
    name: 'the table nat',
    modules: 'iptable_nat or nft_chain_nat',
    table: 'nat',
    rule: () => '-j RETURN',
  },
  {
    name: 'comments',
    modules: 'xt_comment',
    table: 'nat',
    rule: () => '-m comment --comment "switchyard probe" -j RETURN',
  },
  {
    name: 'ports of TCP, UDP and SCTP',
    modules: 'xt_tcpudp, xt_sctp',
    table: 'nat',
    rule: () => '-p sctp -m sctp --dport 80 -j RETURN',
  },
  {
    name: 'the state of a connection',
    modules: 'xt_conntrack',
    table: 'filter',
    rule: () => '-m conntrack --ctstate INVALID -j DROP',
  },
  {
    name: 'marks',
    modules: 'xt_mark',
    table: 'nat',
    rule: () => '-m mark ! --mark 0x4000/0x4000 -j MARK --set-xmark 0x4000/0x4000',
  },
  {
    name: 'local addresses as a condition',
    modules: 'xt_addrtype',
    table: 'nat',
    rule: () => '-m addrtype --dst-type LOCAL -j RETURN',
  },
  {
    name: 'choice by chance',
    modules: 'xt_statistic',
    table: 'nat',
    rule: () => '-m statistic --mode random --probability 0.50000000000 -j RETURN',
  },
  {
    name: 'session affinity',
    modules: 'xt_recent',
    table: 'nat',
    rule: (ipFamily) =>
      `-m recent --rcheck --seconds 1 --reap --name SWITCHYARD --mask ${isFour(ipFamily) ? '255.255.255.255' : 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'} --rsource -j RETURN`,
  },
  {
    name: 'translation of destinations',
    modules: 'xt_nat',
    table: 'nat',
    rule: (ipFamily) =>
      `-p tcp -m tcp -j DNAT --to-destination ${isFour(ipFamily) ? '192.0.2.1:80' : '[2001:db8::1]:80'}`,
  },
  {
    name: 'masquerading to random ports',
    modules: 'xt_MASQUERADE',
    table: 'nat',
    rule: () => '-j MASQUERADE --random-fully',
  },
  {
    name: 'refusal with an answer',
    modules: 'ipt_REJECT, ip6t_REJECT',
    table: 'filter',
    rule: (ipFamily) =>
      `-j REJECT --reject-with ${isFour(ipFamily) ? 'icmp-port-unreachable' : 'icmp6-port-unreachable'}`,
  },
];

/** A text for `iptables-restore` that holds rules with these features, in chains that nothing leads to. */
export function featureText(features: readonly RuleFeature[], ipFamily: IpFamily): string {
  const tables = [...new Set(features.map(({ table }) => table))];
  const text = tables.map((table) => {
    const rules = features
      .filter((feature) => feature.table === table)
      .map(({ rule }) => `-A ${chain} ${rule(ipFamily)}\n`);
    return `*${table}\n:${chain} - [0:0]\n${rules.join('')}COMMIT\n`;
  });
  return text.join('');
}

const chain = 'SWITCHYARD-PROBE';
