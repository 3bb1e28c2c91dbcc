import type { Agent } from 'node:http';
import type {
  ApiObject,
  DaemonSet,
  Deployment,
  EndpointSlice,
  EventObject,
  Namespace,
  Node,
  Pod,
  ReplicaSet,
  Service,
  ServiceCidr,
} from './api-types.ts';
import { followResource } from './api-client/follow.ts';
import { createTransport, type ApiTransport } from './api-client/transport.ts';

/** One resource of the API server and, through `T`, the shape of its objects. */
export interface ApiResource<T extends ApiObject> {
  /** '' is the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** Never set; carries `T`. */
  readonly _object?: T;
}

/** The resources that lab controllers use. */
export const apiResources: {
  readonly services: ApiResource<Service>;
  readonly endpointSlices: ApiResource<EndpointSlice>;
  readonly nodes: ApiResource<Node>;
  readonly pods: ApiResource<Pod>;
  readonly namespaces: ApiResource<Namespace>;
  readonly events: ApiResource<EventObject>;
  readonly deployments: ApiResource<Deployment>;
  /** Served only where they are asked for: `ClusterOptions.hasDaemonSets`. */
  readonly daemonSets: ApiResource<DaemonSet>;
  readonly replicaSets: ApiResource<ReplicaSet>;
  readonly serviceCidrs: ApiResource<ServiceCidr>;
} = {
  services: { group: '', version: 'v1', plural: 'services', kind: 'Service', isNamespaced: true },
  endpointSlices: {
    group: 'discovery.k8s.io',
    version: 'v1',
    plural: 'endpointslices',
    kind: 'EndpointSlice',
    isNamespaced: true,
  },
  nodes: { group: '', version: 'v1', plural: 'nodes', kind: 'Node', isNamespaced: false },
  pods: { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true },
  namespaces: { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', isNamespaced: false },
  events: { group: '', version: 'v1', plural: 'events', kind: 'Event', isNamespaced: true },
  deployments: { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', isNamespaced: true },
  daemonSets: { group: 'apps', version: 'v1', plural: 'daemonsets', kind: 'DaemonSet', isNamespaced: true },
  replicaSets: { group: 'apps', version: 'v1', plural: 'replicasets', kind: 'ReplicaSet', isNamespaced: true },
  serviceCidrs: {
    group: 'networking.k8s.io',
    version: 'v1',
    plural: 'servicecidrs',
    kind: 'ServiceCIDR',
    isNamespaced: false,
  },
};

/** Which object. `namespace` defaults to `default` for namespaced resources. */
export interface ObjectRef {
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly subresource?: 'status' | 'scale';
}

/** What to list or watch. An absent `namespace` means all. Selectors are in the API's own text form. */
export interface SelectOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** A full list, and the version from which a watch continues it. */
export interface ApiList<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

/**
 * What a watch yields. `listed` is the whole state: it comes first, and again whenever the server no
 * longer knows the version to resume from; the receiver then replaces all it holds.
 */
export type WatchEvent<T> =
  | { readonly kind: 'listed'; readonly items: readonly T[]; readonly resourceVersion: string }
  | { readonly kind: 'added' | 'modified' | 'deleted'; readonly object: T };

/** A change to an object. `merge` is RFC 7386, `json` RFC 6902, `strategic` Kubernetes' own. */
export type Patch =
  | { readonly kind: 'merge' | 'strategic'; readonly body: Readonly<Record<string, unknown>> }
  | { readonly kind: 'json'; readonly body: readonly Readonly<Record<string, unknown>>[] };

/** How to delete. `gracePeriodSeconds: 0` removes a pod at once. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

/**
 * A thin client for one API server over HTTP/1.1 keep-alive connections. Every call rejects with
 * `ApiServerError` when the server refuses (its `status` is the HTTP status, its `code` is
 * `api.` + the Status' reason in kebab case, for example `api.already-exists` or `api.conflict`).
 */
export interface ApiClient extends AsyncDisposable {
  get<T extends ApiObject>(resource: ApiResource<T>, ref: ObjectRef, signal: AbortSignal): Promise<T>;
  /** Like `get`, but undefined for 404. */
  find<T extends ApiObject>(resource: ApiResource<T>, ref: ObjectRef, signal: AbortSignal): Promise<T | undefined>;
  list<T extends ApiObject>(resource: ApiResource<T>, options: SelectOptions, signal: AbortSignal): Promise<ApiList<T>>;
  /**
   * The list, then every change, for ever: resumes from the last version seen (bookmarks included) after
   * any disconnect, lists again on 410, backs off on errors. Ends only by abort, and then quietly.
   */
  watch<T extends ApiObject>(
    resource: ApiResource<T>,
    options: SelectOptions,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<T>>;
  /** The namespace comes from `object.metadata.namespace`, else `default`. */
  create<T extends ApiObject>(resource: ApiResource<T>, object: T, signal: AbortSignal): Promise<T>;
  /** With `metadata.resourceVersion` set, rejects with `api.conflict` (409) when somebody else wrote in between. */
  update<T extends ApiObject>(resource: ApiResource<T>, object: T, signal: AbortSignal): Promise<T>;
  /** Writes only `status`; everything else in `object` is ignored except name, namespace and resourceVersion. */
  updateStatus<T extends ApiObject>(resource: ApiResource<T>, object: T, signal: AbortSignal): Promise<T>;
  patch<T extends ApiObject>(resource: ApiResource<T>, ref: ObjectRef, patch: Patch, signal: AbortSignal): Promise<T>;
  /** Resolves when the server has accepted; a 404 rejects. */
  delete<T extends ApiObject>(
    resource: ApiResource<T>,
    ref: ObjectRef,
    options: DeleteOptions,
    signal: AbortSignal,
  ): Promise<void>;
}

/** Where the server is, and as whom to speak to it. */
export interface ApiClientOptions {
  /** For example `http://10.0.0.1:6443`. */
  readonly url: string;
  readonly token?: string;
  /** Sent as User-Agent and as the field manager of writes. */
  readonly name?: string;
  /** Opens the connections. Default: over loopback, without TLS. An `https:` URL needs one of `node:https`. */
  readonly agent?: Agent;
}

const patchTypes = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
} as const;

/** Makes a client; nothing is sent yet. Disposing it closes all its connections. */
export function createApiClient(options: ApiClientOptions): ApiClient {
  const transport = createTransport(options);
  const call = async <T>(method: string, path: string, body: unknown, signal: AbortSignal): Promise<T> =>
    (await transport.request({ method, path, body }, signal)) as T;
  const client: ApiClient = {
    get: (resource, ref, signal) => call('GET', objectPath(resource, ref), undefined, signal),
    find: async (resource, ref, signal) => {
      const path = objectPath(resource, ref);
      return (await transport.request({ method: 'GET', path, body: undefined, isAbsenceFine: true }, signal)) as never;
    },
    list: (resource, options, signal) => listAll(transport, resource, options, signal),
    watch: (resource, options, signal) =>
      followResource({
        transport,
        path: collectionPath(resource, options.namespace),
        query: selectQuery(options),
        list: (inner) => listAll(transport, resource, options, inner),
        signal,
      }),
    create: (resource, object, signal) =>
      call('POST', collectionPath(resource, namespaceOf(resource, object)), typed(resource, object), signal),
    update: (resource, object, signal) =>
      call('PUT', objectPath(resource, refOf(object)), typed(resource, object), signal),
    updateStatus: (resource, object, signal) =>
      call('PUT', objectPath(resource, { ...refOf(object), subresource: 'status' }), typed(resource, object), signal),
    patch: async (resource, ref, patch, signal) => {
      const contentType = patchTypes[patch.kind];
      const path = objectPath(resource, ref);
      return (await transport.request({ method: 'PATCH', path, body: patch.body, contentType }, signal)) as never;
    },
    delete: async (resource, ref, options, signal) => {
      await call('DELETE', objectPath(resource, ref), options, signal);
    },
    [Symbol.asyncDispose]: async () => {
      transport.close();
    },
  };
  return client;
}

async function listAll<T extends ApiObject>(
  transport: ApiTransport,
  resource: ApiResource<T>,
  options: SelectOptions,
  signal: AbortSignal,
): Promise<ApiList<T>> {
  const path = `${collectionPath(resource, options.namespace)}?${selectQuery(options).toString()}`;
  const body = (await transport.request({ method: 'GET', path, body: undefined }, signal)) as {
    readonly items?: readonly T[] | null;
    readonly metadata: { readonly resourceVersion: string };
  };
  return { items: body.items ?? [], resourceVersion: body.metadata.resourceVersion };
}

function selectQuery(options: SelectOptions): URLSearchParams {
  const query = new URLSearchParams();
  if (options.labelSelector !== undefined) query.set('labelSelector', options.labelSelector);
  if (options.fieldSelector !== undefined) query.set('fieldSelector', options.fieldSelector);
  return query;
}

function collectionPath(resource: ApiResource<ApiObject>, namespace: string | undefined): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.isNamespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${scope}/${resource.plural}`;
}

function objectPath(resource: ApiResource<ApiObject>, ref: ObjectRef): string {
  const suffix = ref.subresource === undefined ? '' : `/${ref.subresource}`;
  return `${collectionPath(resource, ref.namespace ?? 'default')}/${encodeURIComponent(ref.name)}${suffix}`;
}

function namespaceOf(resource: ApiResource<ApiObject>, object: ApiObject): string | undefined {
  return resource.isNamespaced ? (object.metadata.namespace ?? 'default') : undefined;
}

function refOf(object: ApiObject): ObjectRef {
  return { namespace: object.metadata.namespace, name: object.metadata.name ?? '' };
}

function typed(resource: ApiResource<ApiObject>, object: ApiObject): ApiObject {
  const apiVersion = resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
  return { ...object, kind: resource.kind, apiVersion };
}
