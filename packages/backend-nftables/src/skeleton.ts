import { createHash } from 'node:crypto';
import type { Decision } from '@switchyard/core';
import {
  classMask,
  codeShifts,
  codeTargets,
  decisionClass,
  hex,
  idMask,
  masqueradeCode,
  restrictedClass,
} from './handles.ts';
import {
  affinityMap,
  affinityMapSize,
  birthmarkSet,
  type DropSet,
  dropSets,
  dropSetSize,
  type FamilySuffix,
  heartbeatSet,
  masqueradeMark,
  ruleMarksSet,
  ruleMarksSize,
  type TableName,
} from './names.ts';
import { loadBalancingClasses } from './slots.ts';

/**
 * The constant rule set. Rules never change for a Service, an endpoint or a setting: only elements do.
 *
 * A packet's way: `services` finds the frontend's handle; `dispatch` leaves the one code that counts for the
 * source class in it; `set-cluster` or `set-local` finds the endpoint set; `lb4-N` picks one of its N slots.
 * When a commit between the last two look-ups removed the slot picked, `lb4-1` takes slot 0.
 *
 * `frontends` and `nodeports` count what they are asked for; refusals are counted per service id in a set per
 * reason, which the rules themselves fill.
 */
export function skeleton(table: TableName | string): string {
  return [create(table), `table inet ${table} {`, ...body(), '}', lbClasses(table), ''].join('\n');
}

/** What the birthmark set holds: a digest of the rules, so that every change of them is another version. */
export function skeletonDigest(): number {
  digest ??= digestOf(rules());
  return digest;
}

let digest: number | undefined;

function digestOf(lines: readonly string[]): number {
  return createHash('sha256').update(lines.join('\n')).digest().readUInt32BE(0);
}

interface Family {
  readonly suffix: FamilySuffix;
  /** How rules spell the family's header. */
  readonly ip: 'ip' | 'ip6';
}

const families: readonly Family[] = [
  { suffix: '4', ip: 'ip' },
  { suffix: '6', ip: 'ip6' },
];

/** For people: whose table this is, which version of the rules, and what comes of changing it. A table keeps the comment it is made with. */
function create(table: string): string {
  const comment = `owner: switchyard node agent; rules: ${hex(skeletonDigest())}; changes by others are undone`;
  return `create table inet ${table} { comment "${comment}"; }`;
}

function body(): string[] {
  return [`  set ${birthmarkSet} { type mark; elements = { ${hex(skeletonDigest())} } }`, ...rules()];
}

function rules(): string[] {
  return [
    `  set ${ruleMarksSet} { type mark . mark; size ${ruleMarksSize}; }`,
    ...families.flatMap(familyObjects),
    '  chain reject-chain { meta l4proto tcp reject with tcp reset; reject; }',
    ...families.flatMap(familyChains),
    ...servicesChain(),
    '  chain nat-prerouting { type nat hook prerouting priority -100; goto services; }',
    '  chain nat-output { type nat hook output priority -100; goto services; }',
    ...postroutingChain(),
  ];
}

/** Where a packet goes to, as frontends are keyed. */
const tuple = (ip: Family['ip']): string => `${ip} daddr . meta l4proto . th dport`;

function familyObjects({ suffix, ip }: Family): string[] {
  return [
    `  map frontends${suffix} { typeof ${tuple(ip)} : meta priority; counter; }`,
    `  map nodeports${suffix} { typeof meta l4proto . th dport : meta priority; counter; }`,
    `  map to-cluster${suffix} { typeof meta priority : meta priority; }`,
    `  map to-local${suffix} { typeof meta priority : meta priority; }`,
    `  map endpoints${suffix} { typeof meta priority . numgen random mod 2 : ${ip} daddr . th dport; }`,
    `  set hairpin${suffix} { typeof ${ip} saddr . ${tuple(ip)}; }`,
    `  set cluster-ips${suffix} { typeof ${ip} daddr; }`,
    `  set pod-cidrs${suffix} { typeof ${ip} saddr; flags interval; }`,
    `  set pod-interfaces${suffix} { typeof iifname; flags interval; }`,
    `  set nodeport-ips${suffix} { typeof ${ip} daddr; flags interval; }`,
    `  set service-cidrs${suffix} { typeof ${ip} daddr; flags interval; }`,
    `  set fw-allow${suffix} { typeof ${tuple(ip)} . ${ip} saddr; flags interval; }`,
    `  map aff-endpoints${suffix} { typeof meta priority : ${ip} daddr . th dport; }`,
    `  map aff-slots${suffix} { typeof meta priority . numgen random mod 2 : meta priority; }`,
    `  map ${affinityMap}${suffix} { typeof ${ip} saddr . meta priority : meta priority; ` +
      `size ${affinityMapSize}; flags dynamic,timeout; }`,
    ...dropSets.map(
      (set) => `  set ${set}${suffix} { typeof meta priority; size ${dropSetSize}; flags dynamic; counter; }`,
    ),
    `  set ${heartbeatSet}${suffix} { typeof meta time; size 16; flags timeout; gc-interval 1h; ` +
      `comment "last known to be right, age = timeout - expires"; }`,
  ];
}

/** Chains of a family come apart so that no rule asks for it, and so that the kernel's loop check has fewer paths to walk. */
function familyChains(family: Family): string[] {
  return [
    `  map lb${family.suffix}-classes { typeof meta priority : verdict; }`,
    ...refusalChains(family),
    ...loadBalancingClasses.flatMap(({ slots }) => lbChain(family, slots)),
    ...setChain('cluster', family),
    ...setChain('local', family),
    ...commonChains(family),
    ...dispatchChain(family),
  ];
}

/** Counts, then refuses. Two rules: when the set is full its update ends the rule it stands in. */
function refusalChains({ suffix }: Family): string[] {
  const chain = (name: string, set: DropSet, verdict: string): string[] => [
    `  chain ${name}${suffix} {`,
    `    ${onlyId} update @${set}${suffix} { meta priority }`,
    `    ${verdict}`,
    '  }',
  ];
  return [
    ...chain('no-local', 'drops-no-local', 'drop'),
    ...chain('no-endpoints', 'drops-no-endpoints', 'goto reject-chain'),
    ...chain('bad-source', 'drops-source', 'drop'),
  ];
}

/** Leaves the id of a handle. */
const onlyId = `meta priority set meta priority and ${hex(idMask)}`;

/**
 * nft wants the protocol match: without it, it refuses an `addr . port` map whose key has no port. Each costs an
 * anonymous set, and loading is quadratic in them, so there is one per chain. Slot 0 is there while any is; kernels
 * before 6.17 may miss it while a commit replaces it, so it is asked for twice.
 */
function lbChain({ suffix, ip }: Family, slots: number): string[] {
  const pick =
    `    meta l4proto { tcp, udp, sctp } ${onlyId} dnat ${ip} addr . port ` +
    `to meta priority . numgen random mod ${slots} map @endpoints${suffix}`;
  const otherwise = slots === 1 ? [pick, '    drop'] : [`    goto lb${suffix}-1`];
  return [`  chain lb${suffix}-${slots} {`, pick, ...otherwise, '  }'];
}

/**
 * Every endpoint change replaces a value here. Kernels before 6.17 may miss a key that a commit is just
 * replacing, so the rule is there twice. The last `drop` is for a packet that raced with a removal.
 */
function setChain(set: 'cluster' | 'local', { suffix }: Family): string[] {
  const rule =
    `    meta priority set meta priority and ${hex(idMask)} map @to-${set}${suffix} ` +
    `meta priority and ${hex(classMask)} vmap @lb${suffix}-classes`;
  return [`  chain set-${set}${suffix} {`, rule, rule, '    drop', '  }'];
}

const bits = (classBits: number): number => (classBits << 20) >>> 0;
const podBits = bits(7 << codeShifts.pod);
const nodeBits = bits(7 << codeShifts.node);
const outsideBits = bits(7 << codeShifts.outside);
const masqueradeBits = Object.values(codeShifts).reduce((sum, shift) => sum + bits(masqueradeCode << shift), 0);

const inCluster: Decision = { kind: 'forward', to: 'Cluster', masquerade: false };
const masqueraded: Decision = { kind: 'forward', to: 'Cluster', masquerade: true };

/** The rows nearly every Service has, and where they lead by the shortest way. All of them would also end well in `dispatch`. */
const commonRows: readonly { readonly handleClass: number; readonly chain: string }[] = [
  { handleClass: decisionClass({ pod: inCluster, node: inCluster, outside: inCluster }), chain: 'set-cluster' },
  { handleClass: decisionClass({ pod: inCluster, node: masqueraded, outside: masqueraded }), chain: 'by-pod' },
  { handleClass: decisionClass({ pod: masqueraded, node: masqueraded, outside: masqueraded }), chain: 'masq-cluster' },
];

function commonChains({ suffix, ip }: Family): string[] {
  return [
    `  chain masq-cluster${suffix} {`,
    `    meta mark set meta mark or ${hex(masqueradeMark)} goto set-cluster${suffix}`,
    '  }',
    `  chain by-pod${suffix} {`,
    `    ${ip} saddr @pod-cidrs${suffix} goto set-cluster${suffix}`,
    `    iifname @pod-interfaces${suffix} goto set-cluster${suffix}`,
    `    goto masq-cluster${suffix}`,
    '  }',
  ];
}

/**
 * Any row. The sources of a restricted frontend are asked for before anything else is decided; its bit keeps it out of
 * the common rows. The four rules after that leave one of three codes, at its own place: pod's if there is one and
 * the source is a pod, told by its address or by the interface it came in (what this node sends itself has none);
 * else node's if there is one and the source is this node; else outside's. Drop
 * is code 4 alone, which reads as 0 without its masquerade bit and so matches nothing.
 */
function dispatchChain({ suffix, ip }: Family): string[] {
  const common = commonRows.map(({ handleClass, chain }) => `${hex(bits(handleClass))} : goto ${chain}${suffix}`);
  const targets = Object.values(codeShifts).flatMap((shift) =>
    codeTargets.map(({ code, chain }) => `${hex(bits(code << shift))} : goto ${chain.replace('?', suffix)}`),
  );
  const isAsked = (mask: number): string => `meta priority and ${hex(mask)} != 0`;
  const keep = (mask: number): string => `meta priority set meta priority and ${hex((mask | idMask) >>> 0)}`;
  return [
    `  chain dispatch${suffix} {`,
    `    meta priority and ${hex(classMask)} vmap { ${common.join(', ')} }`,
    `    ${isAsked(bits(restrictedClass))} ${tuple(ip)} . ${ip} saddr != @fw-allow${suffix} goto bad-source${suffix}`,
    `    ${isAsked(podBits)} ${ip} saddr @pod-cidrs${suffix} ${keep(podBits)}`,
    `    ${isAsked(podBits)} iifname @pod-interfaces${suffix} ${keep(podBits)}`,
    `    ${isAsked(nodeBits)} fib saddr type local ${keep(nodeBits)}`,
    `    ${isAsked(outsideBits)} ${keep(outsideBits)}`,
    `    ${isAsked(masqueradeBits)} meta mark set meta mark or ${hex(masqueradeMark)}`,
    `    meta priority and ${hex((classMask & ~masqueradeBits) >>> 0)} vmap { ${targets.join(', ')} }`,
    `    goto no-local${suffix}`,
    '  }',
  ];
}

/** An address of its own beats a NodePort; a cluster IP's unknown port comes after all known ones. */
function servicesChain(): string[] {
  const loopback = { '4': '127.0.0.0/8', '6': '::1' } as const;
  const perFamily = (rule: (family: Family) => string): string[] => families.map((family) => `    ${rule(family)}`);
  return [
    '  chain services {',
    ...perFamily(({ suffix, ip }) => `meta priority set ${tuple(ip)} map @frontends${suffix} goto dispatch${suffix}`),
    ...perFamily(
      ({ suffix, ip }) =>
        `${ip} daddr @nodeport-ips${suffix} ${ip} daddr != ${loopback[suffix]} fib daddr type local ` +
        `meta priority set meta l4proto . th dport map @nodeports${suffix} goto dispatch${suffix}`,
    ),
    ...perFamily(({ suffix, ip }) => `${ip} daddr @cluster-ips${suffix} goto reject-chain`),
    ...perFamily(({ suffix, ip }) => `${ip} daddr @service-cidrs${suffix} drop`),
    '  }',
  ];
}

/** The mark is cleared when used, so that a packet which re-enters the stack is not masqueraded twice. */
function postroutingChain(): string[] {
  return [
    '  chain nat-postrouting { type nat hook postrouting priority 100;',
    '    ct status dnat meta priority set 0:0',
    `    meta mark and ${hex(masqueradeMark)} != 0 meta mark set meta mark xor ${hex(masqueradeMark)} masquerade fully-random`,
    ...families.map(
      ({ suffix, ip }) =>
        `    ct status dnat ${ip} saddr . ${ip} daddr . meta l4proto . th dport @hairpin${suffix} masquerade fully-random`,
    ),
    '  }',
  ];
}

function lbClasses(table: string): string {
  const line = ({ suffix }: Family): string => {
    const elements = loadBalancingClasses.map(
      ({ slots, handleClass }) => `${hex(bits(handleClass))} : goto lb${suffix}-${slots}`,
    );
    return `add element inet ${table} lb${suffix}-classes { ${elements.join(', ')} }`;
  };
  return families.map(line).join('\n');
}
