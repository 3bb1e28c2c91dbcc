import { formatDuration } from './read-value.ts';
import type { EffectiveSettings } from './effective.ts';
import type { FlagValues } from './flags/parse-flags.ts';
import type { Flag } from './flags/flag.ts';
import { flags } from './flags/table.ts';
import { proxyModeOf, stanzaOf } from './proxy-mode.ts';
import type { Field, FieldType, FieldValue } from './schema/field.ts';
import type { Settings } from './settings.ts';

/** Plain data, as JSON has it. */
export type Plain = string | number | boolean | null | readonly Plain[] | PlainObject;

/** An object of plain data. */
export interface PlainObject {
  readonly [key: string]: Plain;
}

/**
 * Returns every field of a configuration with its value, as in a file. An unset minimum period is written as 0s, which means
 * unset here and in kube-proxy.
 */
export function toDocument(settings: Settings): PlainObject {
  const { apiVersion, kind } = settings.schema;
  const fields = settings.entries().map(([{ path, type }, { value }]) => [path, toPlain(type, value)] as const);
  const sorted = [['apiVersion', apiVersion] as const, ['kind', kind] as const, ...fields].sort(byName);
  const document: Record<string, Plain> = {};
  for (const [path, value] of sorted) put(document, path.split('.'), value);
  return document;
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);

/** Body of `/configz`, by the name of the configuration group. */
export function configzDocument({ kubeProxy, switchyard }: EffectiveSettings): PlainObject {
  return { 'kubeproxy.config.k8s.io': toDocument(kubeProxy), 'switchyard.dev': toDocument(switchyard) };
}

/** Body of `/flagz`: every flag with its value; flags that were not given have the field's value or default. */
export function flagzValues(given: FlagValues, settings: EffectiveSettings): ReadonlyMap<string, string> {
  const sorted = flags.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return new Map(sorted.map((flag) => [flag.name, given.get(flag.name)?.texts.join(',') ?? unsetText(flag, settings)]));
}

function flagText(type: FieldType, value: FieldValue): string {
  if (value instanceof Map) return [...value].map(([name, on]) => `${name}=${on}`).join(',');
  const plain = type === 'nanoseconds' ? formatDuration(Number(value)) : toPlain(type, value);
  if (Array.isArray(plain)) return plain.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join(',');
  return plain === null ? '' : String(plain);
}

/** Formats the default of a field as text for a flag; empty if there is none. */
export function defaultText({ path, type, default: value }: Field): string {
  return path === 'nftables.minSyncPeriod' ? '' : flagText(type, value);
}

function unsetText({ target, type }: Flag, { kubeProxy, switchyard }: EffectiveSettings): string {
  switch (target.kind) {
    case 'field':
      return flagText(type, kubeProxy.at(target.path).value);
    case 'fieldOfMode':
      return flagText(type, kubeProxy.at(`${stanzaOf(proxyModeOf(kubeProxy))}.${target.name}`).value);
    case 'own':
      return flagText(type, switchyard.at(target.path).value);
    default:
      return type === 'boolean' ? 'false' : '';
  }
}

function toPlain(type: FieldType, value: FieldValue): Plain {
  if (typeof value === 'object') {
    if (value instanceof Map) return Object.fromEntries([...value].sort(byName));
    const list = value as readonly Plain[]; // texts, or rules of two plain fields
    return list.length === 0 ? null : list;
  }
  if (type === 'duration') return formatDuration(Number(value));
  return type === 'nanoseconds' ? Number(value) * 1e6 : value;
}

function put(object: Record<string, Plain>, [key = '', ...rest]: readonly string[], value: Plain): void {
  if (rest.length === 0) object[key] = value;
  else put((object[key] ??= {}) as Record<string, Plain>, rest, value); // made here, by an earlier field
}
