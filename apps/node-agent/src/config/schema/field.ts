/** One entry of `logging.vmodule`. */
export interface VModuleRule {
  readonly filePattern: string;
  readonly verbosity: number;
}

/** A setting's value. Durations are milliseconds. */
export type FieldValue =
  | boolean
  | number
  | string
  | readonly string[]
  | ReadonlyMap<string, boolean>
  | readonly VModuleRule[];

/**
 * How a value is written. `duration` is Go's (`30s`); `nanoseconds` is that or a whole number of nanoseconds;
 * `quantity` is a number of bytes such as `4Ki`; `gates` maps names to booleans.
 */
export type FieldType =
  | 'boolean'
  | 'integer'
  | 'number'
  | 'text'
  | 'duration'
  | 'nanoseconds'
  | 'quantity'
  | 'list'
  | 'gates'
  | 'vmodule';

/** Meaning of a setting here compared with kube-proxy. */
export type Meaning =
  | { readonly kind: 'same' }
  /** Supported, with additional behaviour. */
  | { readonly kind: 'better'; readonly how: string }
  /** Supported, but different in some details. */
  | { readonly kind: 'different'; readonly how: string }
  /** Accepted and checked, without effect. */
  | { readonly kind: 'ignored'; readonly why: string }
  /** Some values that kube-proxy takes are refused. */
  | { readonly kind: 'refused'; readonly why: string };

/** Effect of a changed file on the running process. `none`: the setting has no effect. */
export type ChangeClass = 'live' | 'restart' | 'none';

/** One setting of a configuration file. */
export interface Field {
  /** As in the file: `conntrack.min`. */
  readonly path: string;
  readonly type: FieldType;
  /** Default of a field that is missing, null, or the zero value of its type (but see `isZeroKept`). */
  readonly default: FieldValue;
  /** Zero and false are values of their own; only a missing or null field is unset. */
  readonly isZeroKept?: true;
  /** Which proxy modes of kube-proxy read it. */
  readonly modes: string;
  readonly meaning: Meaning;
  readonly change: ChangeClass;
  /** One sentence without a full stop. */
  readonly help: string;
  /** Holds IP addresses or ranges: octets may have leading zeros, which are decimal, as kube-proxy reads its own file. */
  readonly hasAddresses?: true;
  /** Checked in every mode, as kube-proxy does, also in those that do not read it. */
  readonly isAlwaysChecked?: true;
  /** Returns the fault of a value, as the end of "Invalid value: x: ...". Called for values other than the default. */
  readonly check?: (value: FieldValue) => string | undefined;
}

/** A field without the attributes that it shares with its group. */
export type FieldRow = readonly [
  path: Field['path'],
  type: Field['type'],
  byDefault: Field['default'],
  help: Field['help'],
  rest?: Partial<Field>,
];

/** Defines fields that share `common`, in the order of the rows; a row may override it. Fields without effect have the change class `none`. */
export function fieldsOf(
  common: Pick<Field, 'modes' | 'change'> & Partial<Field>,
  rows: readonly FieldRow[],
): readonly Field[] {
  return rows.map(([path, type, byDefault, help, rest]): Field => {
    const field: Field = { path, type, default: byDefault, meaning: same, ...common, help, ...rest };
    return field.meaning.kind === 'ignored' ? { ...field, change: 'none' } : field;
  });
}

/** As in kube-proxy. */
export const same: Meaning = { kind: 'same' };

/** Accepted and checked, without effect. */
export function ignored(why: string): Meaning {
  return { kind: 'ignored', why };
}

/** Supported, with additional behaviour. */
export function better(how: string): Meaning {
  return { kind: 'better', how };
}

/** Fields of one kind of configuration file. */
export interface Schema {
  readonly apiVersion: string;
  readonly kind: string;
  readonly fields: readonly Field[];
}

const fieldsByPath = new WeakMap<Schema, ReadonlyMap<string, Field>>();

/** The field at a path, if the schema has one. */
export function fieldAt(schema: Schema, path: string): Field | undefined {
  let byPath = fieldsByPath.get(schema);
  if (byPath === undefined) {
    byPath = new Map(schema.fields.map((field) => [field.path, field]));
    fieldsByPath.set(schema, byPath);
  }
  return byPath.get(path);
}

/** Whether `value` is Go's zero value of its type, which means unset. */
export function isZero(value: FieldValue): boolean {
  if (value instanceof Map) return value.size === 0;
  if (Array.isArray(value)) return value.length === 0;
  return value === 0 || value === '' || value === false;
}
