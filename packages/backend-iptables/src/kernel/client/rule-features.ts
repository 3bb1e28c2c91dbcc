import type { IpFamily } from '@switchyard/core';
import type { RuleText, TableName } from '../../render/chains.ts';
import { hostMask, rejectTarget } from '../../render/rule-text.ts';

/** A feature of iptables and the kernel that the rules need. */
export interface RuleFeature {
  readonly name: string;
  /** The kernel's modules, any of which may be built in. */
  readonly modules: string;
  readonly table: TableName;
  /** A rule that needs this feature and as few others as possible. */
  readonly rule: RuleText;
}

/** All features that the rules need of iptables and the kernel. Each is tried alone to name the missing ones after a refusal. */
export function ruleFeatures(ipFamily: IpFamily): readonly RuleFeature[] {
  const mask = hostMask(ipFamily);
  const destination = ipFamily === 'IPv4' ? '192.0.2.1:80' : '[2001:db8::1]:80';
  return (
    [
      ['the table mangle', 'iptable_mangle or nf_tables', 'mangle', '-j RETURN'],
      ['the table filter', 'iptable_filter or nf_tables', 'filter', '-j RETURN'],
      ['the table nat', 'iptable_nat or nft_chain_nat', 'nat', '-j RETURN'],
      ['comments', 'xt_comment', 'nat', '-m comment --comment "switchyard probe" -j RETURN'],
      ['ports of TCP, UDP and SCTP', 'xt_tcpudp, xt_sctp', 'nat', '-p sctp -m sctp --dport 80 -j RETURN'],
      ['the state of a connection', 'xt_conntrack', 'filter', '-m conntrack --ctstate INVALID -j DROP'],
      ['marks', 'xt_mark', 'nat', '-m mark ! --mark 0x4000/0x4000 -j MARK --set-xmark 0x4000/0x4000'],
      ['local addresses as a condition', 'xt_addrtype', 'nat', '-m addrtype --dst-type LOCAL -j RETURN'],
      ['choice by chance', 'xt_statistic', 'nat', '-m statistic --mode random --probability 0.50000000000 -j RETURN'],
      [
        'session affinity',
        'xt_recent',
        'nat',
        `-m recent --rcheck --seconds 1 --reap --name SWITCHYARD --mask ${mask} --rsource -j RETURN`,
      ],
      ['translation of destinations', 'xt_nat', 'nat', `-p tcp -m tcp -j DNAT --to-destination ${destination}`],
      ['masquerading to random ports', 'xt_MASQUERADE', 'nat', '-j MASQUERADE --random-fully'],
      ['refusal with an answer', 'ipt_REJECT, ip6t_REJECT', 'filter', rejectTarget(ipFamily)],
    ] as const
  ).map(([name, modules, table, rule]) => ({ name, modules, table, rule }));
}

/** A text for `iptables-restore` that holds rules with these features, in chains that nothing leads to. */
export function featureText(features: readonly RuleFeature[]): string {
  const chain = 'SWITCHYARD-PROBE';
  const rules = Object.groupBy(features, ({ table }) => table);
  const texts = Object.entries(rules).map(([table, ofTable]) => {
    const lines = ofTable.map(({ rule }) => `-A ${chain} ${rule}\n`);
    return `*${table}\n:${chain} - [0:0]\n${lines.join('')}COMMIT\n`;
  });
  return texts.join('');
}
