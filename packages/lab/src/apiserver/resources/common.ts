import type { Millis } from '@switchyard/core';
import type { Column } from '../resource.ts';
import { type Json, type JsonObject, listAt, objectAt, stringAt } from '../json.ts';

/** The first column of every kind. */
export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  priority: 0,
  cell: (object) => stringAt(object, 'metadata', 'name'),
};

/** Time since creation, as kubectl words it. */
export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  format: '',
  priority: 0,
  cell: (object, now) => since(stringAt(object, 'metadata', 'creationTimestamp'), now),
};

export function textSelectors(...paths: readonly string[]): Readonly<Record<string, (object: JsonObject) => string>> {
  return Object.fromEntries(paths.map((path) => [path, (object: JsonObject) => stringAt(object, ...path.split('.'))]));
}

export function column(name: string, cell: Column['cell'], priority: 0 | 1 = 0): Column {
  return { name, type: 'string', format: '', priority, cell };
}

export function numberColumn(name: string, cell: Column['cell']): Column {
  return { name, type: 'integer', format: '', priority: 0, cell };
}

/** `text`, or `<none>` when it is empty. */
export function orNone(text: string): string {
  return text === '' ? '<none>' : text;
}

/** Time since an RFC 3339 time: `12s`, `3m4s`, `2h`, `5d`; `<unknown>` for ''. */
export function since(time: string, now: Millis): string {
  if (time === '') return '<unknown>';
  const seconds = Math.max(0, Math.floor((now - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return withRest(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return withRest(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  return days < 8 ? withRest(days, 'd', hours % 24, 'h') : `${days}d`;
}

function withRest(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

/** `a=b,c=d`, or `<none>`. */
export function pairsText(pairs: JsonObject): string {
  return orNone(equalities(pairs).join(','));
}

function equalities(pairs: JsonObject): readonly string[] {
  const keys = Object.keys(pairs).sort();
  return keys.map((key) => `${key}=${String(pairs[key])}`);
}

/** A label selector as `kubectl get -o wide` shows it. */
export function selectorText(selector: JsonObject): string {
  const expressions = listAt(selector, 'matchExpressions').map(expressionText);
  return orNone([...equalities(objectAt(selector, 'matchLabels')), ...expressions].join(','));
}

function expressionText(expression: Json): string {
  const key = stringAt(expression, 'key');
  const values = listAt(expression, 'values').map(String).sort().join(',');
  switch (stringAt(expression, 'operator')) {
    case 'In':
      return `${key} in (${values})`;
    case 'NotIn':
      return `${key} notin (${values})`;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return key;
  }
}

/** Columns of `-o wide` for kinds with a pod template. */
export const templateColumns: readonly Column[] = [
  column('Containers', (object) => containersText(object, 'name'), 1),
  column('Images', (object) => containersText(object, 'image'), 1),
  column('Selector', (object) => selectorText(objectAt(object, 'spec', 'selector')), 1),
];

function containersText(object: JsonObject, field: 'name' | 'image'): string {
  const containers = listAt(object, 'spec', 'template', 'spec', 'containers');
  return containers.map((container) => stringAt(container, field)).join(',');
}

/** The condition of that type, or an empty object. */
export function conditionOf(object: JsonObject, type: string): JsonObject {
  const found = listAt(object, 'status', 'conditions').find((condition) => stringAt(condition, 'type') === type);
  return objectAt(found);
}
