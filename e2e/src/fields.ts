import { ConfigError } from '@switchyard/core';
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';

/** A value inside a file, with its place. */
export interface Field {
  readonly value: unknown;
  /** `e2e/matrix.json:12:5: exclude[0].reason`. */
  readonly place: string;
  /** The field one step further in; one that is not there has the value undefined and the place of this one. */
  at(key: string | number): Field;
}

/** Reads a file's text, YAML or JSON, which is a kind of YAML. Throws `ConfigError` with line and column when it is neither. */
export function parseFields(file: string, text: string): Field {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true });
  const [fault] = document.errors;
  if (fault !== undefined) {
    const { line, col } = lines.linePos(fault.pos[0]);
    throw new ConfigError('e2e.syntax', `${file}:${line}:${col}: ${fault.message.split('\n')[0]}`);
  }
  return fieldAt({ file, document, lines }, []);
}

interface Source {
  readonly file: string;
  readonly document: Document;
  readonly lines: LineCounter;
}

type Path = readonly (string | number)[];

function fieldAt(source: Source, path: Path): Field {
  const node = path.length === 0 ? source.document.contents : source.document.getIn(path, true);
  return {
    value: isNode(node) ? node.toJS(source.document) : node,
    place: placeOf(source, path),
    at: (key) => fieldAt(source, [...path, key]),
  };
}

/** Line and column of the nearest value that is there. */
function placeOf(source: Source, path: Path): string {
  const { file, document, lines } = source;
  for (let length = path.length; length >= 0; length--) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    const start = isNode(node) ? node.range?.[0] : undefined;
    if (start === undefined) continue;
    const { line, col } = lines.linePos(start);
    return `${file}:${line}:${col}: ${pathText(path)}`;
  }
  return `${file}: ${pathText(path)}`;
}

function pathText(path: Path): string {
  const text = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('');
  return text === '' ? 'the file' : text.replace(/^\./, '');
}

/** Returns the error for a wrong field: its place, the expectation, and the value found. */
export function fieldFault(field: Field, expected: string): ConfigError {
  const found = field.value === undefined ? 'nothing' : JSON.stringify(field.value);
  return new ConfigError('e2e.field', `${field.place}: expected ${expected}, found ${found}`);
}

/** The fields of an object. Refuses keys that are not in `known`, which is most often a spelling mistake. */
export function readObject<Key extends string>(field: Field, known: readonly Key[]): Readonly<Record<Key, Field>> {
  const { value } = field;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fieldFault(field, 'an object');
  for (const key of Object.keys(value)) {
    if (!(known as readonly string[]).includes(key)) {
      throw new ConfigError('e2e.field', `${field.at(key).place}: there is no such field, only ${known.join(', ')}`);
    }
  }
  return Object.fromEntries(known.map((key) => [key, field.at(key)])) as Readonly<Record<Key, Field>>; // just made so
}

/** The elements of a list, each read by `read`. A field that is not there is refused; an empty list is none. */
export function readList<Item>(field: Field, read: (item: Field) => Item): readonly Item[] {
  const { value } = field;
  if (!Array.isArray(value)) throw fieldFault(field, 'a list');
  return value.map((_, index) => read(field.at(index)));
}

/** A text that is not empty, and matches `pattern`; `expected` describes it in words. */
export function readText(field: Field, pattern: RegExp = /\S/, expected: string = 'a text'): string {
  const { value } = field;
  if (typeof value !== 'string' || !pattern.test(value)) throw fieldFault(field, expected);
  return value;
}

export function readOneOf<Word extends string>(field: Field, words: readonly Word[]): Word {
  const found = words.find((word) => word === field.value);
  if (found === undefined) throw fieldFault(field, `one of ${words.join(', ')}`);
  return found;
}

/** `read`, or undefined where there is nothing. */
export function readOptional<Value>(field: Field, read: (field: Field) => Value): Value | undefined {
  return field.value === undefined ? undefined : read(field);
}

/** Refuses a list in which two elements have the same key. */
export function refuseDoubles(field: Field, keys: readonly string[]): void {
  const index = keys.findIndex((key, at) => keys.indexOf(key) !== at);
  if (index >= 0) throw fieldFault(field.at(index), 'something that does not stand here already');
}
