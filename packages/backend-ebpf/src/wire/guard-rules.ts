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

const hex = (value: number): string => `0x${(value >>> 0).toString(16)}`;

/**
 * All rules of a family, as text for nft. They never change while the wire program is attached.
 *
 * The chains of type nat are empty: that they are there makes the kernel do the NAT which entries ask for. `ct` in the other chain
 * is what turns conntrack on; without it entries would stay unused. That chain runs between conntrack and NAT, so that nobody's NAT
 * rules are asked about what it refuses (our own library's would drop it). A packet for a Service that conntrack sees for the
 * first time and that is not to be translated is one whose entry is gone or never was: it is reset or dropped rather than routed. Marks
 * do not leave the chain.
 */
export function guardChains(family: IpFamily, { service, reject }: WireMarks): readonly string[] {
  const suffix = guardSuffix(family);
  const isReject = `meta mark and ${hex(reject)} != 0`;
  const isService = `meta mark and ${hex(service)} != 0`;
  const isLost = `${isService} ct state new ct status and dnat == 0`;
  return [
    `chain nat-prerouting${suffix} { type nat hook prerouting priority -100; }`,
    `chain nat-postrouting${suffix} { type nat hook postrouting priority 100; }`,
    `chain guard${suffix} {`,
    '  type filter hook prerouting priority -110; policy accept;',
    `  meta nfproto != ${family === 'IPv4' ? 'ipv4' : 'ipv6'} accept`,
    `  meta mark and ${hex(service | reject)} == 0 accept`,
    `  ${isReject} meta l4proto tcp reject with tcp reset`,
    `  ${isReject} reject with ${family === 'IPv4' ? 'icmp' : 'icmpv6'} port-unreachable`,
    `  ${isLost} meta l4proto tcp reject with tcp reset`,
    `  ${isLost} drop`,
    `  ${isService} ct state invalid drop`,
    `  meta mark set meta mark and ${hex(~(service | reject))}`,
    '}',
  ];
}

/** What loads them, in place of the family's chains that are there. */
export function guardScript(chains: readonly string[], replaced: readonly string[]): string {
  return [
    createTable,
    ...deleteChains(replaced),
    `table inet ${guardTable} {`,
    ...chains.map((line) => `  ${line}`),
    '}',
    '',
  ].join('\n');
}

/** What takes chains out, and the table where no others are in it. */
export function removalScript(chains: readonly string[], isLast: boolean): string {
  const lines = isLast ? [`delete table inet ${guardTable}`] : deleteChains(chains);
  return [...lines, ''].join('\n');
}

/** What marks the rules as loaded. */
export function birthmarkScript(family: IpFamily, mark: string): string {
  return `add chain inet ${guardTable} ${birthmarkPrefix}${guardSuffix(family)}-${mark}\n`;
}

/** Makes the table, or takes its flags from one that is there. */
const createTable = `add table inet ${guardTable} { comment "owner: switchyard node agent; changes by others are undone"; }`;

/** What wakes up a table that somebody put to sleep. */
export const wakeScript: string = `${createTable}\n`;

function deleteChains(names: readonly string[]): readonly string[] {
  return names.flatMap((name) => [`flush chain inet ${guardTable} ${name}`, `delete chain inet ${guardTable} ${name}`]);
}
