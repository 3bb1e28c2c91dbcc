import { ipToBytes, parseCidr, parseIp, UsageError } from '@switchyard/core';
import { hex } from '../render/elements.ts';
import type { NftRefusal } from '../kernel/nft-error.ts';
import {
  chainsOf,
  type HookDescription,
  type ObjectDescription,
  objectsOf,
  type PartType,
  type Rule,
  type TableDescription,
} from '../render/rules/model.ts';

/** A map or set of the fake. */
export interface FakeObject {
  readonly kind: 'map' | 'set';
  readonly key: readonly PartType[];
  readonly data: readonly PartType[];
  readonly isInterval: boolean;
  /** Whether its elements have counters. */
  readonly isCounted: boolean;
  /** Packets counted, by key; none means 0. A replaced element starts anew. */
  readonly counts: Map<string, number>;
  /** Canonical key text to data text; empty data in sets. */
  readonly elements: Map<string, string>;
}

/** A chain of the fake. `hook` is set for base chains. */
export interface FakeChain {
  readonly hook: HookDescription['at'] | undefined;
  readonly rules: readonly Rule[];
}

/** A table of the fake. */
export interface FakeTable {
  readonly objects: Map<string, FakeObject>;
  readonly chains: Map<string, FakeChain>;
}

/** A refusal as the kernel would answer. */
export class Refused extends UsageError {
  readonly refusal: NftRefusal;

  constructor(refusal: NftRefusal, message: string) {
    super('fake-nft.refused', message);
    this.refusal = refusal;
  }
}

const refuse = (line: string, why: keyof typeof refusals): Refused => new Refused(refusals[why], `${why}: ${line}`);

const refusals = { exists: 'exists', missing: 'missing', overlap: 'other' } as const satisfies Record<
  string,
  NftRefusal
>;

/** All tables, changed by transactions: a script takes effect as a whole or not at all. */
export class FakeRuleset {
  readonly tables: Map<string, FakeTable> = new Map();
  #undo: (() => void)[] = [];

  /** Makes a table. Throws `Refused` if it exists. */
  load(table: TableDescription): void {
    if (this.tables.has(table.name)) throw refuse(table.name, 'exists');
    this.tables.set(table.name, {
      objects: new Map(objectsOf(table).map((object) => [object.name, objectOf(object)])),
      chains: new Map(chainsOf(table).map(({ name, hook, rules }) => [name, { hook: hook?.at, rules }])),
    });
  }

  /**
   * Runs commands of nft about elements and whole tables, one to a line. Throws `Refused` where the kernel or nft would refuse,
   * `UsageError` for other commands.
   */
  transaction(script: string): void {
    this.#undo = [];
    try {
      for (const line of script.split('\n').map((one) => one.trim())) if (line !== '') this.#command(line);
    } catch (error) {
      for (const step of this.#undo.reverse()) step();
      throw error;
    }
  }

  #command(line: string): void {
    const remove = /^delete table inet (\S+)$/.exec(line);
    if (remove !== null) return this.#deleteTable(remove[1] ?? '', line);
    const flush = /^flush (?:map|set) inet (\S+) (\S+)$/.exec(line);
    if (flush !== null) return this.#flush(this.#object(flush, line));
    const elements = /^(add|delete) element inet (\S+) (\S+) { (.+) }$/.exec(line);
    if (elements !== null) return this.#changeElements(elements, line);
    throw new UsageError('fake-nft.command', `the fake does not know '${line}'; add it to nft-ruleset.ts`);
  }

  #deleteTable(name: string, line: string): void {
    const table = this.#table(name, line);
    this.tables.delete(name);
    this.#undo.push(() => this.tables.set(name, table));
  }

  #changeElements(match: RegExpExecArray, line: string): void {
    const object = this.#object([match[0], match[2] ?? '', match[3] ?? ''], line);
    for (const element of (match[4] ?? '').split(', ')) {
      const [key = '', data = ''] = element.split(' : ');
      checkParts(key, object.key, line);
      if (match[1] === 'add') {
        if (object.data.length > 0) checkParts(data, object.data, line);
        this.#add(object, key, { data, line });
      } else this.#delete(object, key, line);
    }
  }

  #add(object: FakeObject, key: string, { data, line }: { readonly data: string; readonly line: string }): void {
    const there = object.elements.get(key);
    if (there === data) return;
    if (there !== undefined) throw refuse(line, 'exists');
    if (object.isInterval && overlaps(object, key)) throw refuse(line, 'overlap');
    object.elements.set(key, data);
    this.#undo.push(() => object.elements.delete(key));
  }

  #delete(object: FakeObject, key: string, line: string): void {
    const there = object.elements.get(key);
    if (there === undefined) throw refuse(line, 'missing');
    const count = object.counts.get(key);
    object.elements.delete(key);
    object.counts.delete(key);
    this.#undo.push(() => {
      object.elements.set(key, there);
      if (count !== undefined) object.counts.set(key, count);
    });
  }

  #flush(object: FakeObject): void {
    const before = [...object.elements];
    const counts = [...object.counts];
    object.elements.clear();
    object.counts.clear();
    this.#undo.push(() => {
      object.elements.clear();
      for (const [key, data] of before) object.elements.set(key, data);
      for (const [key, count] of counts) object.counts.set(key, count);
    });
  }

  #table(name: string, line: string): FakeTable {
    const table = this.tables.get(name);
    if (table === undefined) throw refuse(line, 'missing');
    return table;
  }

  #object([, table = '', name = '']: readonly string[], line: string): FakeObject {
    const object = this.#table(table, line).objects.get(name);
    if (object === undefined) throw refuse(line, 'missing');
    return object;
  }
}

function objectOf({ kind, key, data = [], flags, counter, elements = [] }: ObjectDescription): FakeObject {
  return {
    kind,
    key,
    data,
    isInterval: flags?.includes('interval') ?? false,
    isCounted: counter === true,
    counts: new Map(),
    elements: new Map(
      elements.map((element) =>
        typeof element === 'number' ? [hex(element), ''] : [hex(element.key), `goto ${element.chain}`],
      ),
    ),
  };
}

function checkParts(text: string, parts: readonly PartType[], line: string): void {
  const count = text.split(' . ').length;
  if (count !== parts.length || text === '') {
    throw new UsageError(
      'fake-nft.element',
      `'${text}' has ${count} parts, ${parts.length} are declared, in '${line}'`,
    );
  }
}

/** Whether the last parts overlap where all others are equal. */
function overlaps(object: FakeObject, key: string): boolean {
  if (key.startsWith('"')) return false; // there is never more than one interface
  const [place, source] = splitLast(key);
  const [start, end] = range(source);
  return [...object.elements.keys()].some((other) => {
    const [otherPlace, otherSource] = splitLast(other);
    if (otherPlace !== place) return false;
    const [otherStart, otherEnd] = range(otherSource);
    return start <= otherEnd && otherStart <= end;
  });
}

/** The last part of a key, and what stands before it. */
export function splitLast(key: string): readonly [before: string, last: string] {
  const at = key.lastIndexOf(' . ');
  return at < 0 ? ['', key] : [key.slice(0, at), key.slice(at + 3)];
}

/** First and last address of a CIDR, as comparable text. */
function range(text: string): readonly [string, string] {
  const cidr = parseCidr(text);
  const length = Number(cidr.slice(cidr.indexOf('/') + 1));
  const bits = addressBits(cidr.slice(0, cidr.indexOf('/')));
  return [bits, bits.slice(0, length).padEnd(bits.length, '1')];
}

function addressBits(address: string): string {
  return [...ipToBytes(parseIp(address))].map((byte) => byte.toString(2).padStart(8, '0')).join('');
}
