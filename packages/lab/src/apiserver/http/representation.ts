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
  switch (options.representation) {
    case 'object':
      return `${object.text}\n`;
    case 'metadata':
      return `${JSON.stringify(partialMetadata(object))}\n`;
    case 'table': {
      const metadata = { resourceVersion: String(object.resourceVersion) };
      return `${JSON.stringify(tableOf(object.resource, [object], metadata, options))}\n`;
    }
  }
}

/** A list as response body. */
export function renderList(
  resource: ResourceDefinition,
  items: readonly StoredObject[],
  meta: ListMeta,
  options: RenderOptions,
): string {
  const metadata = JSON.stringify(meta);
  switch (options.representation) {
    case 'object': {
      const head = `{"kind":"${resource.kind}List","apiVersion":"${apiVersionOf(resource)}","metadata":${metadata}`;
      return `${head},"items":[${items.map((item) => item.itemText).join(',')}]}\n`;
    }
    case 'metadata': {
      const head = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":${metadata}`;
      const rows = items.map((item) => JSON.stringify({ metadata: item.value['metadata'] ?? {} }));
      return `${head},"items":[${rows.join(',')}]}\n`;
    }
    case 'table':
      return `${JSON.stringify(tableOf(resource, items, meta, options))}\n`;
  }
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

/** Only type and metadata of an object. */
export function partialMetadata(object: StoredObject): JsonObject {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: object.value['metadata'] ?? {},
  };
}

function rowOf(item: StoredObject, options: RenderOptions): JsonObject {
  const cells: readonly Json[] = item.resource.columns.map(({ cell }) => cell(item.value, options.now));
  if (options.includeObject === 'None') return { cells };
  if (options.includeObject === 'Metadata') return { cells, object: partialMetadata(item) };
  return { cells, object: JSON.parse(item.text) as JsonObject };
}
