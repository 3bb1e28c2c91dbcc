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
} from './elements.ts';
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
import type {
  ChainDescription,
  Field,
  ObjectDescription,
  PartType,
  Rule,
  Statement,
  TableDescription,
  TableItem,
} from './rules/model.ts';
import { printItem } from './rules/print.ts';
import { loadBalancingClasses } from './place-service.ts';

/**
 * The constant rule set. Rules never change for a Service, an endpoint or a setting: only elements do.
 *
 * A packet's way: `services` finds the frontend's handle; `dispatch` leaves the one code that counts for the
 * source class in it; `set-cluster` or `set-local` finds the endpoint set; `lb4-N` picks one of its N slots.
 * When a commit between the last two look-ups removed the slot picked, `lb4-1` takes slot 0.
 *
 * `frontends` and `nodeports` count lookups; refusals are counted per service id in a set per
 * reason, which the rules themselves fill.
 */
export function skeleton(table: TableName): TableDescription {
  const birthmark: ObjectDescription = {
    kind: 'set',
    name: birthmarkSet,
    declared: 'type',
    key: ['mark'],
    elements: [skeletonDigest()],
  };
  return { name: table, comment: comment(), items: [birthmark, ...rules()] };
}

/** The element of the birthmark set: a digest of the rules' text. Every change of the rules gives another digest. */
export function skeletonDigest(): number {
  digest ??= digestOf(rules().flatMap(printItem));
  return digest;
}

let digest: number | undefined;

function digestOf(lines: readonly string[]): number {
  const text = lines.map((line) => `  ${line}`).join('\n');
  return createHash('sha256').update(text).digest().readUInt32BE(0);
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

/** For people: the owner, the version of the rules, and what follows from changing them. A table keeps its first comment. */
function comment(): string {
  return `owner: switchyard node agent; rules: ${hex(skeletonDigest())}; changes by others are undone`;
}

function rules(): readonly TableItem[] {
  return [
    { kind: 'set', name: ruleMarksSet, declared: 'type', key: ['mark', 'mark'], size: ruleMarksSize },
    ...families.flatMap(familyObjects),
    {
      kind: 'chain',
      name: 'reject-chain',
      isOneLine: true,
      rules: [[isTcp, tcpReset], [{ kind: 'reject', with: 'any' }]],
    },
    ...families.flatMap(familyChains),
    servicesChain(),
    natChain('prerouting'),
    natChain('output'),
    postroutingChain(),
  ];
}

const isTcp: Statement = { kind: 'isProtocol', protocols: ['tcp'] };
const tcpReset: Statement = { kind: 'reject', with: 'tcp reset' };
const drop: Statement = { kind: 'drop' };
const goTo = (chain: string): Statement => ({ kind: 'goto', chain });

function natChain(at: 'prerouting' | 'output'): ChainDescription {
  const hook = { type: 'nat', at, priority: -100 } as const;
  return { kind: 'chain', name: `nat-${at}`, isOneLine: true, hook, rules: [[goTo('services')]] };
}

/** Where a packet goes to, as frontends are keyed. */
const tuple = (ip: Family['ip']): readonly Field[] => [`${ip} daddr`, 'meta l4proto', 'th dport'];

function familyObjects({ suffix, ip }: Family): readonly ObjectDescription[] {
  const priority = ['meta priority'] as const;
  const endpoint = [`${ip} daddr`, 'th dport'] as const;
  const slot = ['meta priority', 'numgen random mod 2'] as const;
  const map = (name: string, key: readonly Field[], data: readonly Field[]): ObjectDescription => ({
    kind: 'map',
    name: `${name}${suffix}`,
    key,
    data,
  });
  const set = (name: string, key: readonly PartType[]): ObjectDescription => ({
    kind: 'set',
    name: `${name}${suffix}`,
    key,
  });
  const intervals = (name: string, key: readonly Field[]): ObjectDescription => ({
    ...set(name, key),
    flags: ['interval'],
  });
  return [
    { ...map('frontends', tuple(ip), priority), counter: true },
    { ...map('nodeports', ['meta l4proto', 'th dport'], priority), counter: true },
    map('to-cluster', priority, priority),
    map('to-local', priority, priority),
    map('endpoints', slot, endpoint),
    set('hairpin', [`${ip} saddr`, ...tuple(ip)]),
    set('cluster-ips', [`${ip} daddr`]),
    intervals('pod-cidrs', [`${ip} saddr`]),
    intervals('pod-interfaces', ['iifname']),
    intervals('nodeport-ips', [`${ip} daddr`]),
    intervals('service-cidrs', [`${ip} daddr`]),
    intervals('fw-allow', [...tuple(ip), `${ip} saddr`]),
    map('aff-endpoints', priority, endpoint),
    map('aff-slots', slot, priority),
    {
      ...map(affinityMap, [`${ip} saddr`, 'meta priority'], priority),
      size: affinityMapSize,
      flags: ['dynamic', 'timeout'],
    },
    ...dropSets.map((name): ObjectDescription => ({
      ...set(name, priority),
      size: dropSetSize,
      flags: ['dynamic'],
      counter: true,
    })),
    {
      ...set(heartbeatSet, ['meta time']),
      size: 16,
      flags: ['timeout'],
      gcIntervalHours: 1,
      comment: 'last known to be right, age = timeout - expires',
    },
  ];
}

/** Each family has its own chains: no rule matches the family, and the kernel's loop check has fewer paths. */
function familyChains(family: Family): readonly TableItem[] {
  return [
    classMap(family),
    ...refusalChains(family),
    ...loadBalancingClasses.map(({ slots }) => lbChain(family, slots)),
    setChain('cluster', family),
    setChain('local', family),
    ...commonChains(family),
    dispatchChain(family),
  ];
}

function classMap({ suffix }: Family): ObjectDescription {
  const elements = loadBalancingClasses.map(({ slots, handleClass }) => ({
    key: bits(handleClass),
    chain: `lb${suffix}-${slots}`,
  }));
  return { kind: 'map', name: `lb${suffix}-classes`, key: ['meta priority'], data: ['verdict'], elements };
}

/** Leaves the id of a handle. */
const onlyId: Statement = { kind: 'maskPriority', mask: idMask };
/** The id of a handle, as a key. */
const id: Field = `meta priority and 0x${idMask.toString(16)}`;

/** Counts, then refuses. Two rules: when the set is full its update ends the rule it stands in. */
function refusalChains({ suffix }: Family): readonly ChainDescription[] {
  const chain = (name: string, set: DropSet, verdict: Statement): ChainDescription => ({
    kind: 'chain',
    name: `${name}${suffix}`,
    rules: [[onlyId, { kind: 'count', fields: ['meta priority'], set: `${set}${suffix}` }], [verdict]],
  });
  return [
    chain('no-local', 'drops-no-local', drop),
    chain('no-endpoints', 'drops-no-endpoints', goTo('reject-chain')),
    chain('bad-source', 'drops-source', drop),
  ];
}

/**
 * nft requires the protocol match: without it, nft refuses an `addr . port` map whose key has no port, also when it lists the rules.
 * Each match costs an anonymous set, so there is one per chain. Slot 0 exists while any slot does; kernels
 * before 6.17 may miss it while a commit replaces it, so it is looked up twice.
 */
function lbChain({ suffix, ip }: Family, slots: number): ChainDescription {
  const pick: Rule = [
    { kind: 'isProtocol', protocols: ['tcp', 'udp', 'sctp'] },
    onlyId,
    { kind: 'dnat', ip, fields: ['meta priority', `numgen random mod ${slots}`], map: `endpoints${suffix}` },
  ];
  const otherwise: readonly Rule[] = slots === 1 ? [pick, [drop]] : [[goTo(`lb${suffix}-1`)]];
  return { kind: 'chain', name: `lb${suffix}-${slots}`, rules: [pick, ...otherwise] };
}

/** Kernels before 6.17 may miss a key during its replacement, so the rule occurs twice. `drop`: raced with a removal. */
function setChain(set: 'cluster' | 'local', { suffix }: Family): ChainDescription {
  const rule: Rule = [
    { kind: 'lookUpPriority', fields: [id], map: `to-${set}${suffix}` },
    { kind: 'vmap', mask: classMask, map: `lb${suffix}-classes` },
  ];
  return { kind: 'chain', name: `set-${set}${suffix}`, rules: [rule, rule, [drop]] };
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

const askForMasquerade: Statement = { kind: 'setMark', operation: 'or', value: masqueradeMark };

function fromPods({ suffix, ip }: Family): readonly Statement[] {
  return [
    { kind: 'inSet', fields: [`${ip} saddr`], set: `pod-cidrs${suffix}` },
    { kind: 'inSet', fields: ['iifname'], set: `pod-interfaces${suffix}` },
  ];
}

function commonChains(family: Family): readonly ChainDescription[] {
  const { suffix } = family;
  const toCluster = goTo(`set-cluster${suffix}`);
  return [
    { kind: 'chain', name: `masq-cluster${suffix}`, rules: [[askForMasquerade, toCluster]] },
    {
      kind: 'chain',
      name: `by-pod${suffix}`,
      rules: [...fromPods(family).map((isPod) => [isPod, toCluster]), [goTo(`masq-cluster${suffix}`)]],
    },
  ];
}

/**
 * Handles all rows. The sources of a restricted frontend are checked before all other decisions; its bit keeps it out of
 * the common rows. The four rules after that leave one of three codes, at its own place: pod's if there is one and
 * the source is a pod, told by its address or by the interface it came in (what this node sends itself has none);
 * else node's if there is one and the source is this node; else outside's. Drop
 * is code 4 alone, which reads as 0 without its masquerade bit and so matches nothing.
 */
function dispatchChain(family: Family): ChainDescription {
  const { suffix, ip } = family;
  const common = commonRows.map(({ handleClass, chain }) => ({ key: bits(handleClass), chain: `${chain}${suffix}` }));
  const targets = Object.values(codeShifts).flatMap((shift) =>
    codeTargets.map(({ code, chain }) => ({ key: bits(code << shift), chain: chain.replace('?', suffix) })),
  );
  const isAsked = (mask: number): Statement => ({ kind: 'hasBits', of: 'priority', mask });
  const keep = (mask: number): Statement => ({ kind: 'maskPriority', mask: (mask | idMask) >>> 0 });
  const isAllowed = { kind: 'inSet', fields: [...tuple(ip), `${ip} saddr`], set: `fw-allow${suffix}` } as const;
  return {
    kind: 'chain',
    name: `dispatch${suffix}`,
    rules: [
      [{ kind: 'vmap', mask: classMask, map: common }],
      [isAsked(bits(restrictedClass)), { ...isAllowed, isNegated: true }, goTo(`bad-source${suffix}`)],
      ...fromPods(family).map((isPod) => [isAsked(podBits), isPod, keep(podBits)]),
      [isAsked(nodeBits), { kind: 'isLocal', address: 'saddr' }, keep(nodeBits)],
      [isAsked(outsideBits), keep(outsideBits)],
      [isAsked(masqueradeBits), askForMasquerade],
      [{ kind: 'vmap', mask: (classMask & ~masqueradeBits) >>> 0, map: targets }],
      [goTo(`no-local${suffix}`)],
    ],
  };
}

/** An address of its own beats a NodePort; a cluster IP's unknown port comes after all known ones. */
function servicesChain(): ChainDescription {
  const loopback = { '4': '127.0.0.0/8', '6': '::1' } as const;
  const isTo = (set: string, { suffix, ip }: Family): Statement => ({
    kind: 'inSet',
    fields: [`${ip} daddr`],
    set: `${set}${suffix}`,
  });
  const find = (map: string, fields: readonly Field[], { suffix }: Family): Rule => [
    { kind: 'lookUpPriority', fields, map: `${map}${suffix}` },
    goTo(`dispatch${suffix}`),
  ];
  const perFamily = (rule: (family: Family) => Rule): readonly Rule[] => families.map(rule);
  return {
    kind: 'chain',
    name: 'services',
    rules: [
      ...perFamily((family) => find('frontends', tuple(family.ip), family)),
      ...perFamily((family) => [
        isTo('nodeport-ips', family),
        { kind: 'isNot', field: `${family.ip} daddr`, cidr: loopback[family.suffix] },
        { kind: 'isLocal', address: 'daddr' },
        ...find('nodeports', ['meta l4proto', 'th dport'], family),
      ]),
      ...perFamily((family) => [isTo('cluster-ips', family), goTo('reject-chain')]),
      ...perFamily((family) => [isTo('service-cidrs', family), drop]),
    ],
  };
}

/** The mark is cleared when used, so that a packet which re-enters the stack is not masqueraded twice. */
function postroutingChain(): ChainDescription {
  const isDnat: Statement = { kind: 'isDnat' };
  const masquerade: Statement = { kind: 'masquerade' };
  return {
    kind: 'chain',
    name: 'nat-postrouting',
    hook: { type: 'nat', at: 'postrouting', priority: 100 },
    rules: [
      [isDnat, { kind: 'setPriority', value: 0 }],
      [
        { kind: 'hasBits', of: 'mark', mask: masqueradeMark },
        { kind: 'setMark', operation: 'xor', value: masqueradeMark },
        masquerade,
      ],
      ...families.map(({ suffix, ip }): Rule => [
        isDnat,
        { kind: 'inSet', fields: [`${ip} saddr`, ...tuple(ip)], set: `hairpin${suffix}` },
        masquerade,
      ]),
    ],
  };
}
