import { UsageError, InvariantError } from './errors.ts';

/** Returns a value as short text for a message. Never throws. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value);
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'function' ? 'a function' : String(value);
}

/** Returns the error for an argument of the wrong type or value; `wanted` completes "must be ...". */
export function wrongArgument(name: string, wanted: string, value: unknown): UsageError {
  return new UsageError('argument.invalid', `${name} must be ${wanted}, not ${shown(value)}`);
}

/** Returns `value` as an object with unknown fields. Throws `UsageError` for anything else, lists included. */
export function objectArgument(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw wrongArgument(name, 'an object', value);
  return value as Readonly<Record<string, unknown>>; // any object may be read by key
}

/** Throws `UsageError` unless `value` is one of these. */
export function requireOneOf(name: string, value: unknown, values: readonly unknown[]): void {
  if (values.includes(value)) return;
  throw wrongArgument(name, values.map((one) => (one === undefined ? 'undefined' : shown(one))).join(' or '), value);
}

/** Throws `UsageError` unless `value` is a list. */
export function requireList(name: string, value: unknown): asserts value is readonly unknown[] {
  if (!Array.isArray(value)) throw wrongArgument(name, 'a list', value);
}

/** Throws `UsageError` unless `value` is a text. */
export function requireText(name: string, value: unknown): asserts value is string {
  if (typeof value !== 'string') throw wrongArgument(name, 'a text', value);
}

/** Throws `UsageError` unless `value` is an object with these methods. */
export function requireMethods(name: string, value: unknown, methods: readonly string[]): void {
  const object = typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  const missing = methods.find((method) => typeof object[method] !== 'function');
  if (missing !== undefined) throw wrongArgument(name, `an object with a method ${missing}`, value);
}

/** Throws `UsageError` unless `value` is a signal. */
export function requireSignal(name: string, value: unknown): void {
  if (!(value instanceof AbortSignal)) throw wrongArgument(name, 'an AbortSignal', value);
}

/** Throws `UsageError` unless `value` is a number. */
export function requireNumber(name: string, value: unknown): asserts value is number {
  if (typeof value !== 'number' || Number.isNaN(value)) throw wrongArgument(name, 'a number', value);
}

/** Throws `UsageError` unless `value` is a function. */
export function requireFunction(name: string, value: unknown): void {
  if (typeof value !== 'function') throw wrongArgument(name, 'a function', value);
}

/** Throws `UsageError`, which names the argument or field, for a wrong value. */
export type ArgumentCheck = (name: string, value: unknown) => void;

/** Throws `UsageError` unless `value` is an object whose fields pass these checks. */
export function requireFields(name: string, value: unknown, checks: Readonly<Record<string, ArgumentCheck>>): void {
  const object = objectArgument(name, value);
  for (const [field, check] of Object.entries(checks)) check(`${name}.${field}`, object[field]);
}

/** Returns a check that accepts undefined as well. */
export function optional(check: ArgumentCheck): ArgumentCheck {
  return (name, value) => {
    if (value !== undefined) check(name, value);
  };
}

/** Returns the check for an object with these methods. */
export function withMethods(...methods: readonly string[]): ArgumentCheck {
  return (name, value) => requireMethods(name, value, methods);
}

/** Returns the check for an object whose fields pass these checks. */
export function withFields(checks: Readonly<Record<string, ArgumentCheck>>): ArgumentCheck {
  return (name, value) => requireFields(name, value, checks);
}

/** Returns the check for one of these values. */
export function oneOf(...values: readonly unknown[]): ArgumentCheck {
  return (name, value) => requireOneOf(name, value, values);
}

/** Check for a `Clock`. */
export const requireClock: ArgumentCheck = withMethods('now', 'monotonic', 'sleep');
/** Check for a `Logger`. */
export const requireLogger: ArgumentCheck = withMethods('error', 'warn', 'info', 'debug', 'trace');
/** Check for a `Metrics`. */
export const requireMetrics: ArgumentCheck = withMethods('add', 'set', 'observe');
/** Check for the first and the longest wait of retries. */
export const requireRetry: ArgumentCheck = withFields({ first: requireNumber, max: requireNumber });

/** Ends a `switch` over a closed union: a new member then fails to compile, and a lie at run time throws. */
export function assertNever(value: never): never {
  throw new InvariantError(
    `unexpected member of a closed union: ${typeof value === 'object' ? JSON.stringify(value) : shown(value)}`,
  );
}
