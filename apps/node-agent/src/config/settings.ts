import { InvariantError, withoutLeadingZeros } from '@switchyard/core';
import { formatDuration } from './read-value.ts';
import { type Field, fieldAt, type FieldValue, isZero, type Schema } from './schema/field.ts';

type Origin =
  | { readonly kind: 'default' }
  | { readonly kind: 'flag'; readonly flag: string }
  | { readonly kind: 'file'; readonly file: string; readonly line: number };

/** A value and where it comes from. */
export interface Setting {
  readonly value: FieldValue;
  readonly origin: Origin;
}

/** Given values by path, before defaults are applied. */
export type GivenSettings = ReadonlyMap<string, Setting>;

/** A fault of one setting. */
export interface Problem {
  /** Kind and path, such as `KubeProxyConfiguration.conntrack.min`. */
  readonly path: string;
  readonly origin: Origin;
  /** The value as written; undefined if the fault concerns more than a value. */
  readonly value: unknown;
  readonly why: string;
}

const defaultOrigin: Origin = { kind: 'default' };

/** Every field of a schema with its value. */
export class Settings {
  readonly schema: Schema;
  readonly #values: ReadonlyMap<string, Setting>;

  /** `defaults` are defaults that depend on other settings, by path. */
  constructor(schema: Schema, given: GivenSettings, defaults: ReadonlyMap<string, FieldValue> = new Map()) {
    this.schema = schema;
    this.#values = new Map(
      schema.fields.map((field) => {
        const fallback = { value: defaults.get(field.path) ?? field.default, origin: defaultOrigin };
        const setting = given.get(field.path);
        return [
          field.path,
          setting === undefined || isUnset(field, setting) ? fallback : withPlainAddresses(field, setting),
        ];
      }),
    );
  }

  at(path: string): Setting {
    const setting = this.#values.get(path);
    if (setting === undefined) throw new InvariantError(`${this.schema.kind} has no field ${path}`);
    return setting;
  }

  text(path: string): string {
    return String(this.at(path).value);
  }

  /** One of the given words; the first one for any other text, which the field's check refuses. */
  word<Word extends string>(path: string, [first, ...others]: readonly [Word, ...Word[]]): Word {
    return others.find((one) => one === this.at(path).value) ?? first;
  }

  /** A number, or a duration in milliseconds. */
  number(path: string): number {
    return Number(this.at(path).value);
  }

  isOn(path: string): boolean {
    return this.at(path).value === true;
  }

  list(path: string): readonly string[] {
    return this.at(path).value as readonly string[]; // the type of the field, checked when it was read
  }

  gates(path: string): ReadonlyMap<string, boolean> {
    return this.at(path).value as ReadonlyMap<string, boolean>; // as above
  }

  entries(): readonly (readonly [Field, Setting])[] {
    return this.schema.fields.map((field) => [field, this.at(field.path)]);
  }
}

/** Go cannot distinguish zero from unset, except behind a pointer; flags are always set. */
function isUnset(field: Field, { value, origin }: Setting): boolean {
  return origin.kind !== 'flag' && field.isZeroKept !== true && isZero(value);
}

function withPlainAddresses(field: Field, setting: Setting): Setting {
  if (field.hasAddresses !== true) return setting;
  const { value } = setting;
  if (typeof value === 'string') return { ...setting, value: withoutLeadingZeros(value) };
  return field.type === 'list' ? { ...setting, value: (value as readonly string[]).map(withoutLeadingZeros) } : setting;
}

/** The problem with the setting at a path; none without a reason. */
export function problemAt(settings: Settings, path: string, why: string | undefined): readonly Problem[] {
  const { schema } = settings;
  const field = fieldAt(schema, path);
  if (field === undefined) throw new InvariantError(`${schema.kind} has no field ${path}`);
  const { value, origin } = settings.at(path);
  return why === undefined ? [] : [{ path: `${schema.kind}.${path}`, origin, value: asWritten(field, value), why }];
}

/** Formats a problem on one line in kube-proxy's words, with the origin of the value. */
export function problemText({ path, origin, value, why }: Problem): string {
  const said = value === undefined ? '' : `Invalid value: ${valueText(value)}: `;
  return `${path}${originText(origin)}: ${said}${why}`;
}

function originText(origin: Origin): string {
  if (origin.kind === 'flag') return ` (--${origin.flag})`;
  return origin.kind === 'file' ? ` (${origin.file}:${origin.line})` : '';
}

/** Returns a value as written in a file: durations as `30s`, gates as an object. */
export function asWritten({ type }: Field, value: FieldValue): unknown {
  if (value instanceof Map) return Object.fromEntries(value);
  return (type === 'duration' || type === 'nanoseconds') && typeof value === 'number' ? formatDuration(value) : value;
}

/** Formats a value for messages. */
export function valueText(value: unknown): string {
  return value instanceof Map ? JSON.stringify(Object.fromEntries(value)) : JSON.stringify(value);
}
