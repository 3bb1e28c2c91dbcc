import type { Millis } from '@switchyard/core';
import type { Allocations } from './allocations.ts';
import type { FieldError } from './status-error.ts';
import type { Json, JsonObject } from './json.ts';
import type { ObjectSchema } from './schema.ts';

/** One column of the Table form that `kubectl get` prints. */
export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer';
  readonly format: '' | 'name';
  /** 0 is always shown, 1 only with `-o wide`. */
  readonly priority: 0 | 1;
  readonly cell: (object: JsonObject, now: Millis) => Json;
}

/** Cluster state that defaulting and validation read. */
export interface ResourceContext {
  readonly now: Millis;
  readonly allocations: Allocations;
  /** The node of that name; undefined when there is none. */
  readonly findNode: (name: string) => JsonObject | undefined;
}

/** Another representation of a resource's objects. */
interface ResourceView {
  readonly of: ResourceDefinition;
  /** Convert an object of this resource to one of `of`, and back. */
  readonly toBase: (object: JsonObject) => JsonObject;
  readonly fromBase: (object: JsonObject) => JsonObject;
}

/** One row of the resource table: all properties of a kind. */
export interface ResourceDefinition {
  /** '' is the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  /** For example `all`. */
  readonly categories: readonly string[];
  readonly isNamespaced: boolean;
  readonly subresources: readonly ('status' | 'scale')[];
  /** Whether the server counts changes of everything but metadata and status in `metadata.generation`. */
  readonly hasGeneration: boolean;
  readonly schema: ObjectSchema;
  /** Whether a finished DELETE answers with the object instead of a Status. */
  readonly returnsDeleted: boolean;
  /** Whether DELETE waits for a grace period, as for Pods. */
  readonly hasGracefulDeletion: boolean;
  /** How names are checked: RFC 1123 label (Service), RFC 1123 subdomain, or not at all (Event). */
  readonly nameRule: 'label' | 'subdomain' | 'any';
  readonly columns: readonly Column[];
  /** Field selectors besides `metadata.name` and `metadata.namespace`. */
  readonly fieldSelectors: Readonly<Record<string, (object: JsonObject) => string>>;
  /** Sets defaults on create and on update; `previous` is undefined on create. */
  readonly setDefaults: (object: JsonObject, previous: JsonObject | undefined, context: ResourceContext) => JsonObject;
  /** Returns all errors of `object`; empty if valid. */
  readonly validate: (
    object: JsonObject,
    previous: JsonObject | undefined,
    context: ResourceContext,
  ) => Iterable<FieldError>;
  /** Status of a new object; undefined keeps what the client sent. */
  readonly initialStatus: ((object: JsonObject) => JsonObject) | undefined;
  /** Sets defaults in a status that a client wrote. */
  readonly setStatusDefaults: (object: JsonObject) => JsonObject;
  /** Empty `spec`/`status` shells that a bookmark of this kind carries. */
  readonly bookmarkShell: JsonObject;
  /** Claims of the stored object in the cluster-wide pools. */
  readonly claims: (object: JsonObject) => readonly string[];
  /** Set when its objects are those of another resource. */
  readonly view: ResourceView | undefined;
}

/** Returns a row with defaults, among them v1 of the core group; a kind's file has only the differences. */
export function defineResource(
  row: Pick<ResourceDefinition, 'kind' | 'isNamespaced' | 'schema' | 'columns'> & Partial<ResourceDefinition>,
): ResourceDefinition {
  const singular = row.kind.toLowerCase();
  return {
    group: '',
    version: 'v1',
    plural: `${singular}s`,
    singular,
    shortNames: [],
    categories: [],
    subresources: [],
    hasGeneration: false,
    returnsDeleted: false,
    hasGracefulDeletion: false,
    nameRule: 'subdomain',
    fieldSelectors: {},
    setDefaults: (object) => object,
    validate: () => [],
    initialStatus: undefined,
    setStatusDefaults: (object) => object,
    bookmarkShell: {},
    claims: () => [],
    view: undefined,
    ...row,
  };
}

/** `apiVersion` of a resource: `v1`, `apps/v1`. */
export function apiVersionOf(resource: Pick<ResourceDefinition, 'group' | 'version'>): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}
