import type { ChainDescription, Rule, Statement, TableDescription } from '@switchyard/backend-nftables';
import type { IpFamily } from '@switchyard/core';

/** The table, in the family `inet`. Each IP family has chains of its own in it, so that one can come and go without the other. */
export const guardTable = 'switchyard-ebpf-guard';

/** Prefix of the name of the empty chain that identifies the loaded rules. */
export const birthmarkPrefix = 'birthmark';

/** Suffix of a family's chain names; the birthmark has it after its prefix. */
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
 * The chains of type nat are empty: their existence makes the kernel apply the NAT of conntrack entries. `ct` in the other chain turns
 * conntrack on; without it entries would stay unused. That chain runs between conntrack and NAT, so that no NAT rule sees the packets
 * that it refuses (our own library's rules would drop them). A packet for a Service that is new to conntrack and has no translation has
 * lost its entry or never had one: the chain resets or drops it, so that it is not routed. Marks do not leave the chain.
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

export function guardDescription(items: readonly ChainDescription[]): TableDescription {
  return { name: guardTable, comment: 'owner: switchyard node agent; changes by others are undone', items };
}

export function birthmarkName(family: IpFamily, mark: string): string {
  return `${birthmarkPrefix}${guardSuffix(family)}-${mark}`;
}

/** Two bits of a packet's mark with which the wire program informs the guard table. They are cleared before the packet is routed. */
export interface WireMarks {
  /** Packet for a Service: it must not pass without NAT. */
  readonly service: number;
  /** Packet for a Service that refuses it. */
  readonly reject: number;
}

/** kube-proxy and kubelet use 0x4000 and 0x8000, Cilium 0x0f00, Calico 0xffff0000, AWS VPC CNI 0x80. */
export const defaultWireMarks: WireMarks = { service: 0x1000, reject: 0x2000 };
