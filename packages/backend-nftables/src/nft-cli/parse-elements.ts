import { HostError, type Millis, seconds, tryParseIp } from '@switchyard/core';
import { type Element, elementId } from '../elements.ts';
import { handleClass, hex } from '../handles.ts';
import {
  type CountedObject,
  type DropSet,
  type ElementObject,
  type FamilySuffix,
  intervalKind,
  type IntervalObject,
} from '../names.ts';
import { countedSchema, type Part, schemas } from '../schemas.ts';

/** Elements of one of our maps or sets from nft's JSON, in the canonical text that `elements.ts` writes. */
export function parseElements(object: ElementObject, suffix: FamilySuffix, listed: readonly unknown[]): Element[] {
  const schema = schemas[object];
  return listed.map((item) => {
    const [key, data] = schema.data.length === 0 ? [item, undefined] : (item as readonly [unknown, unknown]);
    return {
      id: elementId(`${object}${suffix}`, parseParts(withoutExtras(key), schema.key)),
      data: schema.data.length === 0 ? '' : parseParts(data, schema.data),
    };
  });
}

/** What the elements of a map or set have counted, by key in canonical text. */
export function parseCounters(
  object: CountedObject | DropSet,
  listed: readonly unknown[],
): ReadonlyMap<string, number> {
  const schema = countedSchema(object);
  return new Map(
    listed.map((item) => {
      const wrapped = schema.data.length === 0 ? item : (item as readonly unknown[])[0];
      const elem = (wrapped as { readonly elem?: { readonly val?: unknown; readonly counter?: unknown } } | null)?.elem;
      const packets = (elem?.counter as { readonly packets?: unknown } | undefined)?.packets;
      if (typeof packets !== 'number') return fail(item);
      return [parseParts(elem?.val, schema.key), packets];
    }),
  );
}

/** A key with a counter or a timeout is wrapped together with it. */
function withoutExtras(key: unknown): unknown {
  const elem = (key as { readonly elem?: { readonly val?: unknown } } | null)?.elem;
  return elem === undefined ? key : elem.val;
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
    case 'protocol':
      return protocolNames[String(value)] ?? fail(value);
    case 'cidr':
      return parseCidr(value) ?? parseRange(value);
    case 'port':
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

/** The numbers of a set of marks; what is no number counts as one that is never right. */
export function parseMarks(listed: readonly unknown[]): readonly number[] {
  return listed.map((item) => (typeof item === 'number' ? item : Number.NaN));
}

/** How long ago the youngest element of a heartbeat set was written, in whole seconds; undefined for none. */
export function parseHeartbeat(listed: readonly unknown[]): Millis | undefined {
  const ages = listed.flatMap((item) => {
    const elem = (item as { readonly elem?: { readonly timeout?: unknown; readonly expires?: unknown } } | null)?.elem;
    const { timeout, expires } = elem ?? {};
    return typeof timeout === 'number' && typeof expires === 'number' ? [Math.max(0, timeout - expires)] : [];
  });
  return ages.length === 0 ? undefined : seconds(Math.min(...ages));
}

/** A map of load-balancing classes: class to the name of its chain. */
export function parseClasses(listed: readonly unknown[]): ReadonlyMap<number, string> {
  return new Map(
    listed.map((item) => {
      const [key, verdict] = item as readonly [unknown, { readonly goto?: { readonly target?: unknown } } | undefined];
      const chain = verdict?.goto?.target;
      return [handleClass(parseHandle(key)), typeof chain === 'string' ? chain : fail(item)];
    }),
  );
}

/** The content of an interval set, as `render-settings.ts` writes it, sorted. */
export function parseIntervals(object: IntervalObject, listed: readonly unknown[]): readonly string[] {
  // Names of interfaces are text, with `*` for any rest: in quotes that is what we write.
  const parse = intervalKind(object) === 'interface' ? JSON.stringify : parseInterval;
  return listed.map((item) => parse(item)).sort();
}

function parseInterval(item: unknown): string {
  // A range has no such form: somebody else wrote it, and it will differ from all we want.
  return parseCidr(item) ?? JSON.stringify(item);
}

function parseCidr(item: unknown): string | undefined {
  const prefix = (item as { readonly prefix?: { readonly addr?: unknown; readonly len?: unknown } } | null)?.prefix;
  const address = tryParseIp(String(prefix?.addr ?? item));
  if (address === undefined) return undefined;
  return `${address}/${prefix === undefined ? (address.includes(':') ? 128 : 32) : String(prefix.len)}`;
}

/** A range that somebody else wrote, in the form in which nft takes it back to delete it. */
function parseRange(item: unknown): string {
  const ends = (item as { readonly range?: unknown } | null)?.range;
  return Array.isArray(ends) ? ends.map((end) => tryParseIp(String(end)) ?? fail(item)).join('-') : fail(item);
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
