/** A property of a packet, by nft's name. */
export type Field =
  | `ip${'' | '6'} ${'s' | 'd'}addr`
  | 'meta l4proto'
  | 'th dport'
  | 'iifname'
  | 'meta priority'
  | `meta priority and 0x${string}`
  | `numgen random mod ${number}`;

/** One part of a key or of data: a field, or a type of which no packet field is named. */
export type PartType = Field | 'meta time' | 'mark' | 'verdict';

/** How a rule refuses a packet. `any`: port unreachable, in the packet's own family. */
export type RejectKind = 'tcp reset' | 'any' | 'icmp port-unreachable' | 'icmpv6 port-unreachable';

/** One part of a rule. The list is closed: printer, encoder and tracer know each of them. */
export type Statement =
  | { readonly kind: 'isFamily'; readonly family: 'ipv4' | 'ipv6'; readonly isNegated?: boolean }
  | { readonly kind: 'isProtocol'; readonly protocols: readonly string[] }
  | { readonly kind: 'isLocal'; readonly address: 'saddr' | 'daddr' }
  | { readonly kind: 'isDnat'; readonly isNegated?: boolean }
  | { readonly kind: 'isState'; readonly state: 'new' | 'invalid' }
  | { readonly kind: 'inSet'; readonly fields: readonly Field[]; readonly set: string; readonly isNegated?: boolean }
  | { readonly kind: 'isNot'; readonly field: Field; readonly cidr: string }
  | { readonly kind: 'hasBits'; readonly of: 'priority' | 'mark'; readonly mask: number; readonly isNegated?: boolean }
  | { readonly kind: 'setPriority'; readonly value: number }
  | { readonly kind: 'maskPriority'; readonly mask: number }
  | { readonly kind: 'lookUpPriority'; readonly fields: readonly Field[]; readonly map: string }
  | { readonly kind: 'setMark'; readonly operation: 'and' | 'or' | 'xor'; readonly value: number }
  | { readonly kind: 'vmap'; readonly mask: number; readonly map: string | readonly VerdictElement[] }
  | { readonly kind: 'dnat'; readonly ip: 'ip' | 'ip6'; readonly fields: readonly Field[]; readonly map: string }
  | { readonly kind: 'count'; readonly fields: readonly Field[]; readonly set: string }
  | { readonly kind: 'goto'; readonly chain: string }
  | { readonly kind: 'reject'; readonly with: RejectKind }
  | { readonly kind: 'drop' }
  | { readonly kind: 'accept' }
  | { readonly kind: 'masquerade' };

/** The statements of one rule, in order. */
export type Rule = readonly Statement[];

/** A priority, and the chain it leads to. */
export interface VerdictElement {
  readonly key: number;
  readonly chain: string;
}

export interface ObjectDescription {
  readonly kind: 'map' | 'set';
  readonly name: string;
  /** How the parts are declared; default: `typeof`. */
  readonly declared?: 'type' | 'typeof';
  readonly key: readonly PartType[];
  /** Empty for a set. */
  readonly data?: readonly PartType[];
  /** Default: the kernel's. */
  readonly size?: number;
  readonly flags?: readonly ('interval' | 'dynamic' | 'timeout')[];
  /** Whether each element counts packets. */
  readonly counter?: boolean;
  /** How often expired elements are collected. */
  readonly gcIntervalHours?: number;
  readonly comment?: string;
  /** Elements that the table is made with. */
  readonly elements?: readonly number[] | readonly VerdictElement[];
}

/** Where a base chain hooks in. */
export interface HookDescription {
  readonly type: 'nat' | 'filter';
  readonly at: 'prerouting' | 'output' | 'postrouting';
  readonly priority: number;
  readonly policy?: 'accept';
}

/** A chain. */
export interface ChainDescription {
  readonly kind: 'chain';
  readonly name: string;
  /** Undefined for a chain that others lead to. */
  readonly hook?: HookDescription;
  readonly rules: readonly Rule[];
  /** Whether the text has it on one line. */
  readonly isOneLine?: boolean;
}

/** Anything in a table, in the order of its text. */
export type TableItem = ObjectDescription | ChainDescription;

/** An `inet` table: the single source of its netlink messages, its text and the rules of the fake. */
export interface TableDescription {
  readonly name: string;
  readonly comment: string;
  readonly items: readonly TableItem[];
}

export function objectsOf({ items }: Pick<TableDescription, 'items'>): readonly ObjectDescription[] {
  return items.filter((item) => item.kind !== 'chain');
}

export function chainsOf({ items }: Pick<TableDescription, 'items'>): readonly ChainDescription[] {
  return items.filter((item) => item.kind === 'chain');
}

/** The mask of a field that is a part of the priority; undefined for other fields. */
export function priorityMask(field: PartType): number | undefined {
  return field.startsWith(maskedPriority) ? Number(field.slice(maskedPriority.length)) : undefined;
}

/** The modulus of a random number; undefined for other fields. */
export function randomModulus(field: PartType): number | undefined {
  return field.startsWith(randomNumber) ? Number(field.slice(randomNumber.length)) : undefined;
}

const maskedPriority = 'meta priority and ';
const randomNumber = 'numgen random mod ';
