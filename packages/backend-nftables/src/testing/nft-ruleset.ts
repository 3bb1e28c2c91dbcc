import { ipToBytes, parseCidr, parseIp, UsageError } from '@switchyard/core';
import { type Field, parseFields, parseRule, type Statement } from './nft-rule.ts';

/** A part of an element's key or data. */
export type PartType = Field | 'verdict' | 'mark' | 'meta time';

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
  readonly hook: 'prerouting' | 'output' | 'postrouting' | undefined;
  readonly rules: (readonly Statement[])[];
}

/** A table of the fake. */
export interface FakeTable {
  readonly objects: Map<string, FakeObject>;
  readonly chains: Map<string, FakeChain>;
}

/** What the kernel would answer. */
export class Refused extends UsageError {}

/** Thrown texts are the kernel's, by errno. */
export const refusals = {
  exists: 'Could not process rule: File exists',
  missing: 'No such file or directory',
  overlap: 'interval overlaps with an existing one',
} as const;

const refuse = (line: string, why: string): Refused => new Refused('fake-nft.refused', `${why}\n${line}`);

/** All tables, changed by transactions: a script takes effect as a whole or not at all. */
export class FakeRuleset {
  readonly tables: Map<string, FakeTable> = new Map();
  #undo: (() => void)[] = [];

  /** Throws `Refused` where the kernel or nft would refuse, `UsageError` on text outside the grammar. */
  transaction(script: string): void {
    this.#undo = [];
    try {
      this.#run(script.split('\n'));
    } catch (error) {
      for (const step of this.#undo.reverse()) step();
      throw error;
    }
  }

  #run(lines: readonly string[]): void {
    let table: string | undefined;
    let chain: FakeChain | undefined;
    for (const line of lines.map((one) => one.trim())) {
      if (line === '') continue;
      if (line === '}') {
        if (chain === undefined) table = undefined;
        chain = undefined;
      } else if (chain !== undefined) chain.rules.push(parseRule(line));
      else if (table !== undefined) chain = this.#declare(table, line);
      else table = this.#command(line);
    }
  }

  /** Returns the table whose block the line opens. */
  #command(line: string): string | undefined {
    const create = /^create table inet (\S+)(?: { comment "[^"]+"; })?$/.exec(line);
    if (create !== null) this.#createTable(create[1] ?? '', line);
    const open = /^table inet (\S+) {$/.exec(line);
    const remove = /^delete table inet (\S+)$/.exec(line);
    if (remove !== null) this.#deleteTable(remove[1] ?? '', line);
    const flush = /^flush (?:map|set) inet (\S+) (\S+)$/.exec(line);
    if (flush !== null) this.#flush(this.#object(flush, line));
    const elements = /^(add|delete) element inet (\S+) (\S+) { (.+) }$/.exec(line);
    if (elements !== null) this.#changeElements(elements, line);
    if ([create, open, remove, flush, elements].every((match) => match === null)) throw unknown(line);
    return open?.[1];
  }

  #createTable(name: string, line: string): void {
    if (this.tables.has(name)) throw refuse(line, refusals.exists);
    this.tables.set(name, { objects: new Map(), chains: new Map() });
    this.#undo.push(() => this.tables.delete(name));
  }

  #deleteTable(name: string, line: string): void {
    const table = this.#table(name, line);
    this.tables.delete(name);
    this.#undo.push(() => this.tables.set(name, table));
  }

  /** One line of a table block. Returns the chain whose block it opens. */
  #declare(tableName: string, line: string): FakeChain | undefined {
    const table = this.#table(tableName, line);
    const object =
      /^(map|set) (\S+) { (type|typeof) ([^:;]+?)(?: : ([^;]+))?;(?: size \d+;)?( flags [a-z,]+;)?( counter;)?(?: gc-interval \d+h;)?(?: comment "[^"]+";)?(?: elements = { (.+) })? }$/.exec(
        line,
      );
    if (object !== null) {
      const [, kind, name = '', , key = '', data, flags, counter, elements] = object;
      if (table.objects.has(name)) throw refuse(line, refusals.exists);
      table.objects.set(name, {
        kind: kind === 'map' ? 'map' : 'set',
        key: parseParts(key),
        data: data === undefined ? [] : parseParts(data),
        isInterval: flags?.includes('interval') ?? false,
        isCounted: counter !== undefined,
        counts: new Map(),
        elements: new Map(elements === undefined ? [] : elements.split(', ').map((one) => [one, ''])),
      });
      return undefined;
    }
    const whole = /^chain (\S+) { (.+;) }$/.exec(line);
    const opened = /^chain (\S+) {(.*)$/.exec(line);
    const name = whole?.[1] ?? opened?.[1];
    if (name === undefined) throw unknown(line);
    if (table.chains.has(name)) throw refuse(line, refusals.exists);
    const parts = (whole?.[2] ?? opened?.[2] ?? '')
      .split(';')
      .map((part) => part.trim())
      .filter((part) => part !== '');
    const hook = /^type nat hook (prerouting|output|postrouting) priority -?\d+$/.exec(parts[0] ?? '')?.[1];
    const chain: FakeChain = {
      hook: hook as FakeChain['hook'], // the pattern admits nothing else
      rules: parts.slice(hook === undefined ? 0 : 1).map(parseRule),
    };
    table.chains.set(name, chain);
    return whole === null ? chain : undefined;
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
    if (there !== undefined) throw refuse(line, refusals.exists);
    if (object.isInterval && overlaps(object, key)) throw refuse(line, refusals.overlap);
    object.elements.set(key, data);
    this.#undo.push(() => object.elements.delete(key));
  }

  #delete(object: FakeObject, key: string, line: string): void {
    const there = object.elements.get(key);
    if (there === undefined) throw refuse(line, refusals.missing);
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
    if (table === undefined) throw refuse(line, refusals.missing);
    return table;
  }

  #object([, table = '', name = '']: readonly string[], line: string): FakeObject {
    const object = this.#table(table, line).objects.get(name);
    if (object === undefined) throw refuse(line, refusals.missing);
    return object;
  }
}

function unknown(line: string): UsageError {
  return new UsageError('fake-nft.command', `the fake does not know '${line}'; add it to nft-ruleset.ts`);
}

function parseParts(text: string): readonly PartType[] {
  const parts = text.split(' . ');
  const plain = parts.filter((part) => part === 'verdict' || part === 'mark' || part === 'meta time');
  return plain.length === parts.length ? plain : parseFields(text);
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
