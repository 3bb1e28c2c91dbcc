import { type JsonObject, type MutableJsonObject, objectAt, stringAt } from '../json.ts';
import { apiVersionOf, type ResourceDefinition } from '../resource.ts';

/** Type of a watch event. */
export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** One version of one object. Immutable; its JSON text and event lines are built once, at their first use. */
export class StoredObject {
  readonly resource: ResourceDefinition;
  /** `/namespace/name`; the namespace is empty for cluster-scoped kinds. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: number;
  /** Without `kind` and `apiVersion`. */
  readonly value: JsonObject;
  #itemText: string | undefined;
  #lines: Partial<Record<WatchEventType, string>> = {};

  constructor(resource: ResourceDefinition, value: JsonObject, resourceVersion: number) {
    this.resource = resource;
    this.namespace = stringAt(value, 'metadata', 'namespace');
    this.name = stringAt(value, 'metadata', 'name');
    this.key = `/${this.namespace}/${this.name}`;
    this.resourceVersion = resourceVersion;
    this.value = value;
  }

  /** JSON text in a list: without `kind` and `apiVersion`. */
  get itemText(): string {
    this.#itemText ??= JSON.stringify(this.value);
    return this.#itemText;
  }

  /** JSON text of the whole object. */
  get text(): string {
    return `{"kind":"${this.resource.kind}","apiVersion":"${apiVersionOf(this.resource)}",${this.itemText.slice(1)}`;
  }

  /** One line of a watch stream, with its newline. */
  line(type: WatchEventType): string {
    const known = this.#lines[type];
    if (known !== undefined) return known;
    const line = `{"type":"${type}","object":${this.text}}\n`;
    this.#lines[type] = line;
    return line;
  }
}

const metaOrder = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'ownerReferences',
  'finalizers',
] as const;

/**
 * Returns `object` as one stored version: without type fields, `metadata` in the server's order with this version.
 * An undefined version is for a dry run: the object then carries none.
 */
export function storedObject(
  resource: ResourceDefinition,
  object: JsonObject,
  version: number | undefined,
): StoredObject {
  const { kind: _kind, apiVersion: _apiVersion, metadata: _metadata, ...rest } = object;
  const given = objectAt(object, 'metadata');
  const metadata: MutableJsonObject = {};
  for (const field of metaOrder) {
    const value = field === 'resourceVersion' ? version?.toString() : given[field];
    if (value !== undefined) metadata[field] = value;
  }
  return new StoredObject(resource, { metadata, ...rest }, version ?? 0);
}
