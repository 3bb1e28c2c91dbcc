import { UsageError } from '@switchyard/core';

/** Something a packet has, by nft's name. */
export type Field =
  | 'ip saddr'
  | 'ip daddr'
  | 'ip6 saddr'
  | 'ip6 daddr'
  | 'meta l4proto'
  | 'th dport'
  | 'iifname'
  | 'meta priority'
  | `meta priority and ${string}`
  | `numgen random mod ${number}`;

/** One part of a rule. The grammar is closed: what our rules do not use cannot be parsed. */
export type Statement =
  | { readonly kind: 'isFamily'; readonly family: 'ipv4' | 'ipv6' }
  | { readonly kind: 'isProtocol'; readonly protocols: readonly string[] }
  | { readonly kind: 'isSourceLocal' }
  | { readonly kind: 'isDestinationLocal' }
  | { readonly kind: 'isDnat' }
  | { readonly kind: 'inSet'; readonly fields: readonly Field[]; readonly set: string; readonly isNegated: boolean }
  | { readonly kind: 'isNot'; readonly field: Field; readonly cidr: string }
  | { readonly kind: 'hasBits'; readonly register: 'priority' | 'mark'; readonly mask: number }
  | { readonly kind: 'setPriority'; readonly value: number }
  | { readonly kind: 'maskPriority'; readonly mask: number }
  | { readonly kind: 'lookUpPriority'; readonly fields: readonly Field[]; readonly map: string }
  | { readonly kind: 'setMark'; readonly operation: 'or' | 'xor'; readonly value: number }
  | { readonly kind: 'vmap'; readonly mask: number; readonly map: string | ReadonlyMap<number, string> }
  | { readonly kind: 'dnat'; readonly fields: readonly Field[]; readonly map: string }
  | { readonly kind: 'count'; readonly fields: readonly Field[]; readonly set: string }
  | { readonly kind: 'goto'; readonly chain: string }
  | { readonly kind: 'drop' }
  | { readonly kind: 'reject' }
  | { readonly kind: 'masquerade' };

const field = String.raw`(?:ip6? [sd]addr|iifname|meta l4proto|th dport|meta priority(?: and 0x[0-9a-f]+)?|numgen random mod \d+)`;
const key = String.raw`(${field}(?: \. ${field})*)`;
const number = '(0x[0-9a-f]+)';

type Build = (groups: readonly string[]) => Statement;

/** Longest first where one form starts like another. */
const forms: readonly (readonly [pattern: string, build: Build])[] = [
  ['meta nfproto (ipv4|ipv6)', ([family]) => ({ kind: 'isFamily', family: family === 'ipv4' ? 'ipv4' : 'ipv6' })],
  ['meta l4proto { ([a-z, ]+) }', ([list = '']) => ({ kind: 'isProtocol', protocols: list.split(', ') })],
  ['meta l4proto (tcp|udp|sctp)', ([protocol = '']) => ({ kind: 'isProtocol', protocols: [protocol] })],
  ['fib saddr type local', () => ({ kind: 'isSourceLocal' })],
  ['fib daddr type local', () => ({ kind: 'isDestinationLocal' })],
  ['ct status dnat', () => ({ kind: 'isDnat' })],
  [
    `${key} (!= )?@(\\S+)`,
    ([fields = '', not, set = '']) => ({
      kind: 'inSet',
      fields: parseFields(fields),
      set,
      isNegated: not !== undefined,
    }),
  ],
  [`(ip6? [sd]addr) != ([0-9a-f.:/]+)`, ([name = '', cidr = '']) => ({ kind: 'isNot', field: parseField(name), cidr })],
  [`meta priority and ${number} != 0`, ([mask]) => ({ kind: 'hasBits', register: 'priority', mask: Number(mask) })],
  [`meta mark and ${number} != 0`, ([mask]) => ({ kind: 'hasBits', register: 'mark', mask: Number(mask) })],
  [`meta priority and ${number} vmap @(\\S+)`, ([mask, map = '']) => ({ kind: 'vmap', mask: Number(mask), map })],
  [
    `meta priority and ${number} vmap { ([^}]+) }`,
    ([mask, elements = '']) => ({ kind: 'vmap', mask: Number(mask), map: parseVerdicts(elements) }),
  ],
  [
    `meta priority set ${key} map @(\\S+)`,
    ([fields = '', map = '']) => ({ kind: 'lookUpPriority', fields: parseFields(fields), map }),
  ],
  [`meta priority set meta priority and ${number}`, ([mask]) => ({ kind: 'maskPriority', mask: Number(mask) })],
  ['meta priority set 0:0', () => ({ kind: 'setPriority', value: 0 })],
  [
    `meta mark set meta mark (or|xor) ${number}`,
    ([operation, value]) => ({ kind: 'setMark', operation: operation === 'or' ? 'or' : 'xor', value: Number(value) }),
  ],
  [
    `dnat ip6? addr \\. port to ${key} map @(\\S+)`,
    ([fields = '', map = '']) => ({ kind: 'dnat', fields: parseFields(fields), map }),
  ],
  [`update @(\\S+) { ${key} }`, ([set = '', fields = '']) => ({ kind: 'count', fields: parseFields(fields), set })],
  ['goto (\\S+)', ([chain = '']) => ({ kind: 'goto', chain })],
  ['masquerade fully-random', () => ({ kind: 'masquerade' })],
  ['reject with tcp reset', () => ({ kind: 'reject' })],
  ['reject', () => ({ kind: 'reject' })],
  ['drop', () => ({ kind: 'drop' })],
];

const matchers = forms.map(([pattern, build]) => ({ pattern: new RegExp(`^${pattern}(?= |$)`), build }));

/** Takes a rule apart. Throws `UsageError` on any form that is not in the grammar. */
export function parseRule(text: string): readonly Statement[] {
  const statements: Statement[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const { statement, length } = parseStatement(rest, text);
    statements.push(statement);
    rest = rest.slice(length).trimStart();
  }
  return statements;
}

function parseStatement(rest: string, rule: string): { readonly statement: Statement; readonly length: number } {
  for (const { pattern, build } of matchers) {
    const match = pattern.exec(rest);
    if (match !== null) return { statement: build(match.slice(1)), length: match[0].length };
  }
  throw new UsageError(
    'fake-nft.rule',
    `the fake does not know the rule form '${rest}' in '${rule}'; add it to nft-rule.ts`,
  );
}

/** A key such as `ip daddr . meta l4proto . th dport`. */
export function parseFields(text: string): readonly Field[] {
  return text.split(' . ').map(parseField);
}

const fieldPattern = new RegExp(`^${field}$`);

function parseField(text: string): Field {
  if (!fieldPattern.test(text)) throw new UsageError('fake-nft.field', `the fake does not know the field '${text}'`);
  return text as Field; // the pattern is the type
}

function parseVerdicts(elements: string): ReadonlyMap<number, string> {
  return new Map(
    elements.split(', ').map((element) => {
      const [value = '', verdict = ''] = element.split(' : ');
      return [Number(value), verdict.replace(/^goto /, '')];
    }),
  );
}
