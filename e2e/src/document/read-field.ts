import { ConfigError } from '@switchyard/core';
import type { Field } from './field.ts';

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

/** One of some words. */
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
