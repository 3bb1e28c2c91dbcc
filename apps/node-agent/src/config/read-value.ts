import type { FieldType, FieldValue, VModuleRule } from './schema/field.ts';
import { parseGoDuration } from '@switchyard/core';

/** A duration as Go writes it, negative ones too, in milliseconds; undefined for anything else. */
export function tryParseDuration(text: string): number | undefined {
  const [, sign = '', rest = ''] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  try {
    const value = parseGoDuration(rest);
    return sign === '-' && value > 0 ? -value : value;
  } catch {
    return undefined;
  }
}

/** Milliseconds as Go prints a duration: `24h0m0s`, `1m30s`, `1.5s`, `250ms`, `0s`. */
export function formatDuration(value: number): string {
  if (value === 0) return '0s';
  if (value < 0) return `-${formatDuration(-value)}`;
  if (value < 1) return `${trimmed(value * 1000)}µs`;
  if (value < 1000) return `${trimmed(value)}ms`;
  const hours = Math.floor(value / 3_600_000);
  const minutes = Math.floor((value % 3_600_000) / 60_000);
  const seconds = `${trimmed((value % 60_000) / 1000)}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

/** At most nanoseconds. */
function trimmed(value: number): string {
  return String(Number(value.toFixed(6)));
}

type ReadValue =
  | { readonly status: 'read'; readonly value: FieldValue }
  | { readonly status: 'refused'; readonly why: string };

const read = (value: FieldValue): ReadValue => ({ status: 'read', value });
const refuse = (why: string): ReadValue => ({ status: 'refused', why });

const durationHint = 'must be a duration, such as 30s or 1m30s';
/** Kubernetes' quantities, and `K`, which kube-proxy's own help names. */
const quantity = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[numkKMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$/;

/** Reads a value from the data of a file. Accepts YAML 1.1's words for booleans, as Go's reader does. */
export function valueOfData(type: FieldType, data: unknown): ReadValue {
  switch (type) {
    case 'boolean':
      return readBoolean(data);
    case 'integer':
      return readInteger(data);
    case 'number':
      return typeof data === 'number' && Number.isFinite(data) ? read(data) : refuse('must be a number');
    case 'text':
      return typeof data === 'string' ? read(data) : refuse('must be a string');
    case 'nanoseconds':
      return typeof data === 'number' && Number.isSafeInteger(data) ? read(data / 1e6) : readDuration(data);
    case 'duration':
      return readDuration(data);
    case 'quantity':
      return typeof data === 'number' || (typeof data === 'string' && quantity.test(data))
        ? read(String(data))
        : refuse('must be a quantity, such as 4096 or 4Ki');
    case 'list':
      return Array.isArray(data) && data.every((one) => typeof one === 'string')
        ? read(data)
        : refuse('must be a list of strings');
    case 'gates':
      return typeof data !== 'object' || data === null || Array.isArray(data)
        ? refuse('must map names to true or false')
        : readGates(Object.entries(data), readBoolean);
    case 'vmodule':
      return readRules(data);
  }
}

/** Reads a value from the texts of a flag, in their order. */
export function valueOfTexts(type: FieldType, texts: readonly string[]): ReadValue {
  const text = texts.at(-1) ?? '';
  const parts = texts.flatMap((one) => one.split(',')).filter((part) => part !== '');
  switch (type) {
    case 'boolean':
      return readSwitch(text);
    case 'integer':
      return /^[+-]?(?:\d+|0x[\da-f]+)$/i.test(text) ? readInteger(Number(text)) : refuse('must be a whole number');
    case 'number':
      return text.trim() === '' || !Number.isFinite(Number(text)) ? refuse('must be a number') : read(Number(text));
    case 'text':
    case 'nanoseconds':
    case 'duration':
    case 'quantity':
      return valueOfData(type, text);
    case 'list':
      return read(texts.flatMap((one) => (one === '' ? [] : one.split(',').map((part) => part.trim()))));
    case 'gates':
      return readGateTexts(parts);
    case 'vmodule':
      return readRuleTexts(parts);
  }
}

function readBoolean(data: unknown): ReadValue {
  if (typeof data === 'boolean') return read(data);
  if (typeof data === 'string' && /^(?:yes|on)$/i.test(data)) return read(true);
  if (typeof data === 'string' && /^(?:no|off)$/i.test(data)) return read(false);
  return refuse('must be true or false');
}

/** As Go's strconv reads booleans. */
function readSwitch(text: string): ReadValue {
  if (/^(?:1|t|true)$/i.test(text)) return read(true);
  return /^(?:0|f|false)$/i.test(text) ? read(false) : refuse('must be true or false');
}

function readInteger(data: unknown): ReadValue {
  if (typeof data !== 'number' || !Number.isInteger(data)) return refuse('must be a whole number');
  return Math.abs(data) < 2 ** 31 ? read(data) : refuse('must fit in 32 bits');
}

function readDuration(data: unknown): ReadValue {
  const value = typeof data === 'string' ? tryParseDuration(data) : undefined;
  return value === undefined ? refuse(durationHint) : read(value);
}

function readGates<V>(entries: readonly (readonly [string, V])[], readOne: (raw: V) => ReadValue): ReadValue {
  const gates = new Map<string, boolean>();
  for (const [name, raw] of entries) {
    const gate = readOne(raw);
    if (gate.status === 'refused') return refuse(`${name} ${gate.why}`);
    gates.set(name, gate.value === true);
  }
  return read(gates);
}

function readGateTexts(parts: readonly string[]): ReadValue {
  const odd = parts.find((part) => !part.includes('='));
  if (odd !== undefined) return refuse(`${JSON.stringify(odd)} must be NAME=true or NAME=false`);
  const entries = parts.map((part): [string, string] => {
    const at = part.indexOf('=');
    return [part.slice(0, at).trim(), part.slice(at + 1).trim()];
  });
  return readGates(entries, readSwitch);
}

function readRules(data: unknown): ReadValue {
  const rules: VModuleRule[] = [];
  for (const raw of Array.isArray(data) ? data : [undefined]) {
    const { filePattern, verbosity } = (raw ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof filePattern !== 'string' || !Number.isInteger(verbosity)) {
      return refuse('must be a list of filePattern and verbosity');
    }
    rules.push({ filePattern, verbosity: Number(verbosity) });
  }
  return read(rules);
}

function readRuleTexts(parts: readonly string[]): ReadValue {
  const rules: VModuleRule[] = [];
  for (const part of parts) {
    const [, filePattern, verbosity] = /^([^=]+)=(\d+)$/.exec(part) ?? [];
    if (filePattern === undefined) return refuse(`${JSON.stringify(part)} must be PATTERN=N`);
    rules.push({ filePattern, verbosity: Number(verbosity) });
  }
  return read(rules);
}
