import type { Millis } from '@switchyard/core';
import type { Json, JsonObject } from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';
import type { StoredObject } from '../store.ts';
import type { Representation } from './messages.ts';

/** Representation that one client accepts. */
export interface RenderOptions {
  readonly representation: Representation;
  /** Part of the object in each Table row. */
  readonly includeObject: 'None' | 'Metadata' | 'Object';
  readonly now: Millis;
}

export interface ListMeta {
  readonly resourceVersion: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

/** One object as response body. */
export function renderObject(object: StoredObject, options: RenderOptions): string {
  if (options.representation === 'object') return `${object.text}\n`;
  const metadata = { resourceVersion: String(object.resourceVersion) };
  return `${JSON.stringify(tableOf(object.resource, [object], metadata, options))}\n`;
}

/** A list as response body. */
export function renderList(
  resource: ResourceDefinition,
  items: readonly StoredObject[],
  meta: ListMeta,
  options: RenderOptions,
): string {
  if (options.representation === 'table') return `${JSON.stringify(tableOf(resource, items, meta, options))}\n`;
  const type = `"kind":"${resource.kind}List","apiVersion":"${apiVersionOf(resource)}"`;
  return `{${type},"metadata":${JSON.stringify(meta)},"items":[${items.map((item) => item.itemText).join(',')}]}\n`;
}

/** A Table of objects, with column definitions. */
export function tableOf(
  resource: ResourceDefinition,
  items: readonly StoredObject[],
  meta: ListMeta,
  options: RenderOptions,
): JsonObject {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { ...meta } as JsonObject,
    columnDefinitions: resource.columns.map(({ name, type, format, priority }) => ({
      name,
      type,
      format,
      description: '',
      priority,
    })),
    rows: items.map((item) => rowOf(item, options)),
  };
}

function rowOf(item: StoredObject, options: RenderOptions): JsonObject {
  const cells: readonly Json[] = item.resource.columns.map(({ cell }) => cell(item.value, options.now));
  if (options.includeObject === 'None') return { cells };
  if (options.includeObject === 'Object') return { cells, object: JSON.parse(item.text) as JsonObject };
  const type = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' };
  return { cells, object: { ...type, metadata: item.value['metadata'] ?? {} } };
}
