import type { Agent } from 'node:http';
import { objectArgument } from '../../base/argument.ts';
import { ApiServerError, messageOf } from '../../base/errors.ts';
import { seconds, type Clock, millis } from '../../base/time.ts';
import { newApiAgent } from '../api-request.ts';
import { newApiClient, type ApiClient, parseWatchLine, splitLines } from '../api-client.ts';
import { ApiFailure, statusMessage, isExpired } from '../api-failure.ts';
import { type ApiServerConnection, requireClientOptions, requireConnection } from '../api-server-connection.ts';
import { type JsonAnswer, type JsonRequest, sendJson } from '../send-json.ts';
import type { ApiResource, ApiObject } from './object-types.ts';
import { newBackOff } from '../../base/back-off.ts';
import { defaultTimings } from '../resources.ts';

/** Name of an object. `namespace` defaults to `default` for namespaced resources. */
export interface ObjectRef {
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly subresource?: 'status' | 'scale';
}

/** Selection for a list or watch. An absent `namespace` means all. Selectors are in the API's own text form. */
export interface SelectOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** A change to an object. `merge` is RFC 7386, `strategic` Kubernetes' own. */
export interface Patch {
  readonly kind: 'merge' | 'strategic';
  readonly body: Readonly<Record<string, unknown>>;
}

/** Options of a deletion. `gracePeriodSeconds: 0` removes a pod at once. */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
}

/** Text for the end of an error message, by HTTP status; `0` stands for no answer. */
export type RefusalAdvice = Readonly<Record<number, string>>;

/** Options of a client beside the connection. */
export interface ObjectClientOptions {
  readonly clock: Clock;
  /** Sent as `User-Agent`. */
  readonly userAgent: string;
  /** Opens the connections. Default: over the network, to the connection's URL. */
  readonly agent?: Agent;
  /** Advice for a refusal. Default: nothing is added to messages. */
  readonly advice?: RefusalAdvice;
}

/**
 * A client for the objects of one API server over kept connections. Every call rejects with `ApiServerError` when the
 * server refuses or does not answer (`status` is the HTTP status), and with `signal.reason` when aborted. Repeats
 * requests while the server is overloaded (429).
 */
export interface ObjectClient extends AsyncDisposable {
  /** Sends any request; every status is an answer. */
  send(request: JsonRequest, signal: AbortSignal): Promise<JsonAnswer>;
  get<T extends ApiObject>(resource: ApiResource<T>, ref: ObjectRef, signal: AbortSignal): Promise<T>;
  /** Like `get`, but undefined for 404. */
  find<T extends ApiObject>(resource: ApiResource<T>, ref: ObjectRef, signal: AbortSignal): Promise<T | undefined>;
  list<T extends ApiObject>(resource: ApiResource<T>, options: SelectOptions, signal: AbortSignal): Promise<ApiList<T>>;
  /**
   * Lists, then follows every change: resumes from the last version seen (bookmarks included) after a disconnect, lists
   * again after 410, backs off after errors. Ends only when aborted, and then without an error.
   */
  watch<T extends ApiObject>(
    resource: ApiResource<T>,
    options: SelectOptions,
    signal: AbortSignal,
  ): AsyncIterable<ObjectEvent<T>>;
  /** The namespace is `object.metadata.namespace`, else `default`. */
  create<T extends ApiObject>(resource: ApiResource<T>, object: T, signal: AbortSignal): Promise<T>;
  /** Like `create`, but the server stores nothing. */
  tryCreate<T extends ApiObject>(resource: ApiResource<T>, object: T, signal: AbortSignal): Promise<T>;
  /** With `metadata.resourceVersion` set, rejects with status 409 if the object has changed since. */
  update<T extends ApiObject>(resource: ApiResource<T>, object: T, signal: AbortSignal): Promise<T>;
  /** Writes only `status`; everything else in `object` is ignored except name, namespace and resourceVersion. */
  updateStatus<T extends ApiObject>(resource: ApiResource<T>, object: T, signal: AbortSignal): Promise<T>;
  patch<T extends ApiObject>(resource: ApiResource<T>, ref: ObjectRef, patch: Patch, signal: AbortSignal): Promise<T>;
  /** Resolves when the server has accepted, and when the object does not exist. */
  delete<T extends ApiObject>(
    resource: ApiResource<T>,
    ref: ObjectRef,
    options: DeleteOptions,
    signal: AbortSignal,
  ): Promise<void>;
}

/** Time limit for an answer; calls of a pod's program through the API server take long. */
const answerLimit = seconds(180);
const maxConnections = 32;
const maxRetries = 8;
const retryPause = seconds(1);

/** Makes a client; sends nothing yet. Disposing it closes all its connections. Throws `UsageError` for arguments of other types. */
export function newObjectClient(connection: ApiServerConnection, options: ObjectClientOptions): ObjectClient {
  requireConnection('newObjectClient: connection', connection);
  requireClientOptions('newObjectClient: options', options);
  const { clock, advice = {} } = options;
  objectArgument('newObjectClient: options.advice', advice);
  const agent = options.agent ?? newApiAgent(connection, { keepAlive: true, maxSockets: maxConnections });
  // A watch keeps its connection, so watches have connections of their own.
  const watches = newApiClient(connection, options);
  const send: ObjectClient['send'] = async (request, signal) => {
    for (let left = maxRetries; ; left--) {
      const answer = await sendJson(
        { ...options, connection, agent, answerLimit, maxBytes: Infinity },
        request,
        signal,
      ).catch((error: unknown) => {
        throw error instanceof ApiFailure ? unreachable(request, error, advice[0]) : error;
      });
      if (answer.status !== 429 || left === 0) return answer;
      await clock.sleep(answer.retryAfter ?? retryPause, signal);
    }
  };
  const call = async <T>(request: JsonRequest, signal: AbortSignal, isAbsenceFine = false): Promise<T | undefined> => {
    const answer = await send(request, signal);
    if (answer.status === 404 && isAbsenceFine) return undefined;
    if (answer.status >= 300) throw refusal(request, answer, advice[answer.status]);
    return JSON.parse(answer.body) as T; // the path determines the type
  };
  const write = <T extends ApiObject>(method: 'POST' | 'PUT', path: string, resource: ApiResource<T>, object: T) =>
    ({ method, path, body: { ...object, kind: resource.kind, apiVersion: apiVersionOf(resource) } }) as const;
  const list = async <T extends ApiObject>(resource: ApiResource<T>, options: SelectOptions, signal: AbortSignal) => {
    const query = new URLSearchParams(selectQuery(options)).toString();
    const path = `${collectionPath(resource, options.namespace)}${query === '' ? '' : `?${query}`}`;
    type Body = { readonly items?: readonly T[] | null; readonly metadata: { readonly resourceVersion: string } };
    const body = await call<Body>({ method: 'GET', path }, signal);
    return { items: body?.items ?? [], resourceVersion: body?.metadata.resourceVersion ?? '' };
  };
  return {
    send,
    get: (resource, ref, signal) => call({ method: 'GET', path: objectPath(resource, ref) }, signal) as never,
    find: (resource, ref, signal) => call({ method: 'GET', path: objectPath(resource, ref) }, signal, true),
    list,
    watch: (resource, options, signal) =>
      followObjects({
        client: watches,
        clock,
        path: collectionPath(resource, options.namespace),
        query: selectQuery(options),
        list: () => list(resource, options, signal),
        signal,
      }),
    create: (resource, object, signal) =>
      call(write('POST', homePath(resource, object), resource, object), signal) as never,
    tryCreate: (resource, object, signal) =>
      call(write('POST', `${homePath(resource, object)}?dryRun=All`, resource, object), signal) as never,
    update: (resource, object, signal) =>
      call(write('PUT', objectPath(resource, refOf(object)), resource, object), signal) as never,
    updateStatus: (resource, object, signal) => {
      const path = objectPath(resource, { ...refOf(object), subresource: 'status' });
      return call(write('PUT', path, resource, object), signal) as never;
    },
    patch: (resource, ref, { kind, body }, signal) => {
      const headers = { 'content-type': patchTypes[kind] };
      return call({ method: 'PATCH', path: objectPath(resource, ref), body, headers }, signal) as never;
    },
    delete: async (resource, ref, body, signal) => {
      await call({ method: 'DELETE', path: objectPath(resource, ref), body }, signal, true);
    },
    [Symbol.asyncDispose]: async () => {
      agent.destroy();
      await watches[Symbol.asyncDispose]();
    },
  };
}

const patchTypes = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
} as const;

/** Error for a refused request. */
function refusal({ method, path }: JsonRequest, { status, body }: JsonAnswer, advice = ''): ApiServerError {
  const message = `${method} ${path}: the API server answered ${status}: ${statusMessage(body)}${advice}`;
  const isRetryable = status === 409 || status === 429 || status >= 500;
  return new ApiServerError(`api.${status}`, message, { isRetryable, status });
}

function unreachable({ method, path }: JsonRequest, failure: ApiFailure, advice = ''): ApiServerError {
  const why = messageOf(failure.cause ?? failure);
  const message = `${method} ${path}: no answer from the API server: ${why}${advice}`;
  return new ApiServerError('api.unreachable', message, { cause: failure, isRetryable: true });
}

function selectQuery({ labelSelector, fieldSelector }: SelectOptions): Readonly<Record<string, string>> {
  return {
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
}

function apiVersionOf({ group, version }: ApiResource<ApiObject>): string {
  return group === '' ? version : `${group}/${version}`;
}

function collectionPath(resource: ApiResource<ApiObject>, namespace: string | undefined): string {
  const scope = resource.isNamespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `/${resource.group === '' ? 'api' : 'apis'}/${apiVersionOf(resource)}${scope}/${resource.plural}`;
}

/** Path of the collection to which an object belongs. */
function homePath(resource: ApiResource<ApiObject>, { metadata }: ApiObject): string {
  return collectionPath(resource, metadata.namespace ?? 'default');
}

function objectPath(resource: ApiResource<ApiObject>, ref: ObjectRef): string {
  const suffix = ref.subresource === undefined ? '' : `/${ref.subresource}`;
  return `${collectionPath(resource, ref.namespace ?? 'default')}/${encodeURIComponent(ref.name)}${suffix}`;
}

function refOf({ metadata }: ApiObject): ObjectRef {
  return { namespace: metadata.namespace, name: metadata.name ?? '' };
}

/** A full list, and the version from which a watch continues it. */
export interface ApiList<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

/**
 * One event of a watch. `listed` is the whole state: it comes first, and again whenever the server no longer knows the
 * version to resume from; the receiver then replaces all objects it holds.
 */
export type ObjectEvent<T> =
  | { readonly kind: 'listed'; readonly items: readonly T[]; readonly resourceVersion: string }
  | { readonly kind: 'changed' | 'deleted'; readonly object: T };

interface FollowOptions<T> {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly list: () => Promise<ApiList<T>>;
  readonly signal: AbortSignal;
}

/** Lists, then watches, and repeats both as needed until `signal` aborts; then it ends. */
async function* followObjects<T>(options: FollowOptions<T>): AsyncGenerator<ObjectEvent<T>> {
  const { client, clock, path, signal } = options;
  const backOff = newBackOff({ first: millis(50), max: millis(2_000) }, () => 1);
  let version: string | undefined;
  while (!signal.aborted) {
    try {
      if (version === undefined) {
        const list = await options.list();
        version = list.resourceVersion;
        yield { kind: 'listed', ...list };
      }
      const parameters = {
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: version,
        timeoutSeconds: '300',
      };
      const query = new URLSearchParams({ ...options.query, ...parameters });
      await using body = await client.open({ path, query }, signal);
      body.setInactivity(defaultTimings.inactivity);
      for await (const lines of splitLines(body.chunks(), body.request)) {
        for (const line of lines) {
          const event = parseWatchLine(line, body.request);
          if (event.kind === 'error') throw event.error;
          backOff.reset();
          version = event.kind === 'bookmark' ? event.resourceVersion : event.object.metadata?.resourceVersion;
          if (event.kind !== 'bookmark') yield { kind: event.kind, object: event.object as T };
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof ApiServerError)) throw error;
      if (isExpired(error)) version = undefined;
    }
    // Also after a clean end: otherwise a server that ends every watch at once causes a tight loop.
    await clock.sleep(backOff.next(), signal).catch(() => undefined);
  }
}
