import { type Millis, seconds } from '@switchyard/core';

/** A fault in the names of a query, as text: each of `known` may stand there once, and no other. */
export function faultOfNames(parameters: URLSearchParams, known: readonly string[]): string | undefined {
  for (const name of parameters.keys()) {
    if (!known.includes(name)) return `unknown parameter ${JSON.stringify(name)}`;
    if (parameters.getAll(name).length > 1) return `${name} is given more than once`;
  }
  return undefined;
}

export interface NumberRange {
  readonly standard: number;
  readonly max: number;
}

/** A whole number from 1, or the fault as text. */
export function parseNumber(
  parameters: URLSearchParams,
  name: string,
  { standard, max }: NumberRange,
): number | string {
  const text = parameters.get(name) ?? String(standard);
  const number = Number(text);
  return /^\d+$/.test(text) && number >= 1 && number <= max
    ? number
    : `${name} ${JSON.stringify(text)} is no number from 1 to ${max}`;
}

/** Durations of streams, in seconds. */
export const streamTime: NumberRange = { standard: 10, max: 3600 };

/** `seconds`, or the fault as text. */
export function parseTime(parameters: URLSearchParams, range: NumberRange): Millis | string {
  const number = parseNumber(parameters, 'seconds', range);
  return typeof number === 'string' ? number : seconds(number);
}

/** `format`, absent without one, or the fault as text. */
export function parseFormat(parameters: URLSearchParams): { readonly format?: 'text' | 'json' } | string {
  const format = parameters.get('format');
  if (format === null) return {};
  return format === 'text' || format === 'json'
    ? { format }
    : `format ${JSON.stringify(format)} is neither text nor json`;
}
