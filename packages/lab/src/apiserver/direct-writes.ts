import {
  isJsonList,
  isJsonObject,
  type Json,
  type JsonObject,
  listAt,
  objectAt,
  stringAt,
  withFields,
} from './json.ts';
import type { ResourceDefinition } from './resource.ts';
import { resourceTable } from './resources/resource-table.ts';
import type { ApiServer } from './server.ts';
import { StatusError } from './status-error.ts';

/** Kind and name of an object. `namespace` is '' for cluster-scoped kinds. */
export interface DirectName {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** An object in manifest form, for `DirectWrites.put`. */
export interface DirectObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/**
 * Writes to a server without HTTP, for experiments that need a certain state. Watchers see each write like any other.
 */
export interface DirectWrites {
  /**
   * Creates or replaces the object with its status, by the server's rules. An object that the rules refuse or change is stored
   * unchanged, like one that an older server accepted; the result is then the server's message. An immutable field is changed by
   * deletion and creation. A missing namespace is created.
   */
  put(object: DirectObject): string | undefined;
  /** Removes the object if it exists. */
  remove(name: DirectName): void;
}

const deletion = { gracePeriodSeconds: 0 } as const;

/** Direct writes to a server. */
export function directWrites(server: ApiServer): DirectWrites {
  return {
    put: (object) => new Writer(server, object as unknown as JsonObject).put(),
    remove: ({ kind, namespace, name }) => {
      const resource = resourceOf(kind);
      if (server.store.get(resource, namespace, name) === undefined) return;
      server.registry.delete(resource, { namespace, name }, deletion);
    },
  };
}

function resourceOf(kind: string): ResourceDefinition {
  const found = resourceTable.find((one) => one.kind === kind && one.view === undefined);
  if (found === undefined) throw new Error(`the lab's API server has no kind ${kind}`);
  return found;
}

/** One write of one object. */
class Writer {
  readonly #server: ApiServer;
  readonly #wanted: JsonObject;
  readonly #resource: ResourceDefinition;
  readonly #namespace: string;
  readonly #name: string;

  constructor(server: ApiServer, wanted: JsonObject) {
    this.#server = server;
    this.#wanted = wanted;
    this.#resource = resourceOf(stringAt(wanted, 'kind'));
    this.#namespace = this.#resource.isNamespaced ? stringAt(wanted, 'metadata', 'namespace') || 'default' : '';
    this.#name = stringAt(wanted, 'metadata', 'name');
  }

  put(): string | undefined {
    if (this.#namespace !== '') this.#makeNamespace();
    const refusal = this.#write();
    if (refusal === undefined) this.#writeStatus();
    const stored = this.#stored;
    if (stored !== undefined && holds(stored, without(this.#wanted, 'metadata', 'kind', 'apiVersion'))) return refusal;
    this.#force(stored);
    return refusal ?? 'the API server drops some fields';
  }

  get #stored(): JsonObject | undefined {
    return this.#server.store.get(this.#resource, this.#namespace, this.#name)?.value;
  }

  #makeNamespace(): void {
    const resource = resourceOf('Namespace');
    if (this.#server.store.get(resource, '', this.#namespace) !== undefined) return;
    this.#server.registry.create(resource, '', { metadata: { name: this.#namespace } });
  }

  /** Returns the server's refusal; undefined if it accepted the object. */
  #write(): string | undefined {
    const { registry } = this.#server;
    if (this.#stored !== undefined) {
      const change = { part: 'main', apply: (current: JsonObject) => this.#over(current) } as const;
      const refusal = refusalOf(() => registry.update(this.#resource, this.#fullName, change));
      if (refusal === undefined) return undefined;
      registry.delete(this.#resource, this.#fullName, deletion);
    }
    return refusalOf(() => registry.create(this.#resource, this.#namespace, this.#wanted));
  }

  get #fullName(): { readonly namespace: string; readonly name: string } {
    return { namespace: this.#namespace, name: this.#name };
  }

  /** Returns the replacement: the wanted object with the server's uid and version. */
  #over(current: JsonObject): JsonObject {
    const metadata = withFields(objectAt(this.#wanted, 'metadata'), {
      uid: stringAt(current, 'metadata', 'uid'),
      resourceVersion: stringAt(current, 'metadata', 'resourceVersion'),
    });
    return { ...this.#wanted, metadata };
  }

  #writeStatus(): void {
    const { status } = this.#wanted;
    if (!isJsonObject(status) || !this.#resource.subresources.includes('status')) return;
    const change = { part: 'status', apply: (current: JsonObject) => ({ ...current, status }) } as const;
    this.#server.registry.update(this.#resource, this.#fullName, change);
  }

  #force(stored: JsonObject | undefined): void {
    const spec = { ...objectAt(stored, 'spec'), ...objectAt(this.#wanted, 'spec') };
    const metadata = {
      uid: `forced-${this.#namespace}-${this.#name}`,
      creationTimestamp: `${new Date().toISOString().slice(0, 19)}Z`,
      ...objectAt(this.#wanted, 'metadata'),
      ...(stored === undefined ? {} : objectAt(stored, 'metadata')),
    };
    const hasSpec = Object.keys(spec).length > 0;
    this.#server.store.put(this.#resource, { ...stored, ...this.#wanted, ...(hasSpec ? { spec } : {}), metadata });
  }
}

function refusalOf(write: () => unknown): string | undefined {
  try {
    write();
    return undefined;
  } catch (error) {
    if (error instanceof StatusError && error.fields.code === 422) return error.message;
    throw error;
  }
}

function without(object: JsonObject, ...fields: readonly string[]): JsonObject {
  return withFields(object, Object.fromEntries(fields.map((field) => [field, undefined])));
}

/** Whether `stored` contains all wanted fields; it may have more. Undefined, null, '' and an empty list are equal. */
function holds(stored: Json | undefined, wanted: Json | undefined): boolean {
  if (isEmpty(wanted)) return true;
  if (isJsonObject(wanted)) {
    return isJsonObject(stored) && Object.entries(wanted).every(([key, value]) => holds(stored[key], value));
  }
  if (isJsonList(wanted)) {
    const list = listAt({ list: stored ?? [] }, 'list');
    return list.length === wanted.length && wanted.every((one, index) => holds(list[index], one));
  }
  return stored === wanted;
}

function isEmpty(value: Json | undefined): boolean {
  return value === undefined || value === null || value === '' || (isJsonList(value) && value.length === 0);
}
