import { HostError, tryParseIp } from '@switchyard/core';
import { type Element, elementId } from '../elements.ts';
import { hex } from '../handles.ts';
import type { ElementObject, FamilySuffix } from '../names.ts';

type Part = 'address' | 'cidr' | 'protocol' | 'number' | 'handle';

interface Schema {
  readonly key: readonly Part[];
  /** Empty for a set. */
  readonly data: readonly Part[];
}

const schemas: Readonly<Record<ElementObject, Schema>> = {
  frontends: { key: ['address', 'protocol', 'number'], data: ['handle'] },
  nodeports: { key: ['protocol', 'number'], data: ['handle'] },
  'to-cluster': { key: ['handle'], data: ['handle'] },
  'to-local': { key: ['handle'], data: ['handle'] },
  endpoints: { key: ['handle', 'number'], data: ['address', 'number'] },
  'aff-endpoints': { key: ['handle'], data: ['address', 'number'] },
  'aff-slots': { key: ['handle', 'number'], data: ['handle'] },
  fw: { key: ['address', 'protocol', 'number'], data: ['handle'] },
  'fw-allow': { key: ['address', 'protocol', 'number', 'cidr'], data: [] },
  hairpin: { key: ['address', 'address', 'protocol', 'number'], data: [] },
  'cluster-ips': { key: ['address'], data: [] },
};

/** Elements of one of our maps or sets from nft's JSON, in the canonical text that `elements.ts` writes. */
export function parseElements(object: ElementObject, suffix: FamilySuffix, listed: readonly unknown[]): Element[] {
  const schema = schemas[object];
  return listed.map((item) => {
    const [key, data] = schema.data.length === 0 ? [item, undefined] : (item as readonly [unknown, unknown]);
    return {
      id: elementId(`${object}${suffix}`, parseParts(withoutCounter(key), schema.key)),
      data: schema.data.length === 0 ? '' : parseParts(data, schema.data),
    };
  });
}

/** Elements of maps that count are wrapped, with their counter beside their key. */
function withoutCounter(key: unknown): unknown {
  return (key as { readonly elem?: { readonly val?: unknown } } | null)?.elem?.val ?? key;
}

function parseParts(value: unknown, parts: readonly Part[]): string {
  const concat = (value as { readonly concat?: unknown } | null)?.concat;
  const values: readonly unknown[] = Array.isArray(concat) ? concat : [value];
  if (values.length !== parts.length) throw notOurs(value);
  return parts.map((part, index) => parsePart(part, values[index])).join(' . ');
}

function parsePart(part: Part, value: unknown): string {
  switch (part) {
    case 'address':
      return (typeof value === 'string' ? tryParseIp(value) : undefined) ?? fail(value);
    case 'cidr':
      return parseSource(value);
    case 'protocol':
      return protocolNames[String(value)] ?? fail(value);
    case 'number':
      return typeof value === 'number' ? String(value) : fail(value);
    case 'handle':
      return hex(parseHandle(value));
    default:
      return fail(value);
  }
}

/** nft prints a number when the machine has no /etc/protocols. */
const protocolNames: Readonly<Record<string, string>> = {
  tcp: 'tcp',
  udp: 'udp',
  sctp: 'sctp',
  '6': 'tcp',
  '17': 'udp',
  '132': 'sctp',
};

/** nft prints a packet priority as traffic control's `major:minor`, with either half left out when it is 0. */
function parseHandle(value: unknown): number {
  if (value === 'none') return 0;
  const match = typeof value === 'string' ? /^([0-9a-f]{0,4}):([0-9a-f]{0,4})$/.exec(value) : null;
  if (match === null) return typeof value === 'number' ? value : fail(value);
  return Number.parseInt(`0${match[1]}`, 16) * 0x10000 + Number.parseInt(`0${match[2]}`, 16);
}

/** A CIDR, or a range that somebody else wrote, as nft takes it back to delete it. */
function parseSource(value: unknown): string {
  const range = (value as { readonly range?: readonly unknown[] } | null)?.range?.map((end) => tryParseIp(String(end)));
  return range === undefined ? parseInterval(value) : range.map((end) => end ?? fail(value)).join('-');
}

/** The content of an interval set, as `render-settings.ts` writes it: CIDRs, sorted. */
export function parseIntervals(listed: readonly unknown[]): readonly string[] {
  return listed.map(parseInterval).sort();
}

function parseInterval(item: unknown): string {
  const prefix = (item as { readonly prefix?: { readonly addr?: unknown; readonly len?: unknown } } | null)?.prefix;
  const address = tryParseIp(String(prefix?.addr ?? item));
  // A range has no such form: somebody else wrote it, and it will differ from all we want.
  if (address === undefined) return JSON.stringify(item);
  return `${address}/${prefix === undefined ? (address.includes(':') ? 128 : 32) : String(prefix.len)}`;
}

function fail(value: unknown): never {
  throw notOurs(value);
}

function notOurs(value: unknown): HostError {
  return new HostError(
    'nftables.element',
    `cannot read an element of our own nft table: ${JSON.stringify(value)}; run the agent with --cleanup once, then again`,
  );
}
