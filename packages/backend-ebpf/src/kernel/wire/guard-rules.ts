import type { ChainDescription, Rule, Statement, TableDescription } from '@switchyard/backend-nftables';
import type { IpFamily } from '@switchyard/core';
import type { WireMarks } from './marks.ts';

/** The table, in the family `inet`. Each IP family has chains of its own in it, so that one can come and go without the other. */
export const guardTable = 'switchyard-ebpf-guard';

/** The name of the empty chain that says which rules were loaded begins so. */
export const birthmarkPrefix = 'birthmark';

/** What chains of a family end in; that of the birthmark has it behind its prefix. */
export function guardSuffix(family: IpFamily): '4' | '6' {
  return family === 'IPv4' ? '4' : '6';
}

/** Whether a chain of the table belongs to a family. */
export function isChainOf(family: IpFamily, name: string): boolean {
  const suffix = guardSuffix(family);
  return name.startsWith(birthmarkPrefix) ? name.startsWith(`${birthmarkPrefix}${suffix}-`) : name.endsWith(suffix);
}

/**
 * All rules of a family. They never change while the wire program is attached.
 *
 * The chains of type nat are empty: that they are there makes the kernel do the NAT which entries ask for. `ct` in the other chain
 * is what turns conntrack on; without it entries would stay unused. That chain runs between conntrack and NAT, so that nobody's NAT
 * rules are asked about what it refuses (our own library's would drop it). A packet for a Service that conntrack sees for the
 * first time and that is not to be translated is one whose entry is gone or never was: it is reset or dropped rather than routed. Marks
 * do not leave the chain.
 */
export function guardChains(family: IpFamily, marks: WireMarks): readonly ChainDescription[] {
  const suffix = guardSuffix(family);
  const nat = (at: 'prerouting' | 'postrouting', priority: number): ChainDescription => ({
    kind: 'chain',
    name: `nat-${at}${suffix}`,
    isOneLine: true,
    hook: { type: 'nat', at, priority },
    rules: [],
  });
  return [
    nat('prerouting', -100),
    nat('postrouting', 100),
    {
      kind: 'chain',
      name: `guard${suffix}`,
      hook: { type: 'filter', at: 'prerouting', priority: -110, policy: 'accept' },
      rules: guardRules(family, marks),
    },
  ];
}

function guardRules(family: IpFamily, { service, reject }: WireMarks): readonly Rule[] {
  const both = (service | reject) >>> 0;
  const isReject: Statement = { kind: 'hasBits', of: 'mark', mask: reject };
  const isService: Statement = { kind: 'hasBits', of: 'mark', mask: service };
  const isNew: Statement = { kind: 'isState', state: 'new' };
  const isLost: Rule = [isService, isNew, { kind: 'isDnat', isNegated: true }];
  const tcpReset: Rule = [
    { kind: 'isProtocol', protocols: ['tcp'] },
    { kind: 'reject', with: 'tcp reset' },
  ];
  const unreachable = family === 'IPv4' ? 'icmp port-unreachable' : 'icmpv6 port-unreachable';
  return [
    [{ kind: 'isFamily', family: family === 'IPv4' ? 'ipv4' : 'ipv6', isNegated: true }, { kind: 'accept' }],
    [{ kind: 'hasBits', of: 'mark', mask: both, isNegated: true }, { kind: 'accept' }],
    [isReject, ...tcpReset],
    [isReject, { kind: 'reject', with: unreachable }],
    [...isLost, ...tcpReset],
    [...isLost, { kind: 'drop' }],
    [isService, { kind: 'isState', state: 'invalid' }, { kind: 'drop' }],
    [{ kind: 'setMark', operation: 'and', value: ~both >>> 0 }],
  ];
}

/** A table with these chains: of one family, or of both. */
export function guardDescription(items: readonly ChainDescription[]): TableDescription {
  return { name: guardTable, comment: 'owner: switchyard node agent; changes by others are undone', items };
}

/** The name of the chain that marks the rules as loaded. */
export function birthmarkName(family: IpFamily, mark: string): string {
  return `${birthmarkPrefix}${guardSuffix(family)}-${mark}`;
}
