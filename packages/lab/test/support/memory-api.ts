import { ApiServerError, type Clock } from '@switchyard/core';
import type {
  ApiObject,
  ApiResource,
  DeleteOptions,
  ObjectClient,
  ObjectEvent,
  ObjectMeta,
  ObjectRef,
  Pod,
} from '@switchyard/core/kubernetes';
import { applyMergePatch } from '../../src/apiserver/patch.ts';
import { matchesLabels } from '../../src/workloads/facts.ts';

/** One write, as a watch without a selector reports it. */
export interface MemoryEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: string;
  readonly object: ApiObject;
}

/** An ObjectClient without a server: objects in a map, optimistic concurrency, watches, graceful deletion of pods. */
export interface MemoryApi extends ObjectClient {
  /** Every write so far. */
  readonly events: readonly MemoryEvent[];
  objects<T extends ApiObject>(resource: ApiResource<T>): readonly T[];
  /** The next `count` updates or patches of the resource are refused with 409. */
  refuseWrites(resource: ApiResource<ApiObject>, count: number): void;
}

interface Json {
  readonly [key: string]: unknown;
}

/** An empty API whose timestamps come from `clock`. */
export function createMemoryApi(clock: Clock): MemoryApi {
  const stored = new Map<string, ApiObject>();
  const events: MemoryEvent[] = [];
  const watchers = new Set<(event: MemoryEvent) => void>();
  const refusals = new Map<string, number>();
  let version = 0;
  const at = (): string => `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
  const keyOf = (plural: string, ref: ObjectRef): string => `${plural}/${ref.namespace ?? 'default'}/${ref.name}`;
  const publish = (type: MemoryEvent['type'], plural: string, object: ApiObject, meta: Partial<ObjectMeta> = {}) => {
    version += 1;
    const written = { ...object, metadata: { ...object.metadata, ...meta, resourceVersion: String(version) } };
    const key = keyOf(plural, { ...(written.metadata as ObjectRef) });
    if (type === 'DELETED') stored.delete(key);
    else stored.set(key, written);
    const event = { type, resource: plural, object: written };
    events.push(event);
    for (const tell of watchers) tell(event);
    return written;
  };
  const present = (plural: string, ref: ObjectRef): ApiObject => {
    const object = stored.get(keyOf(plural, ref));
    if (object === undefined) throw refused('not-found', 404);
    return object;
  };
  const write = (plural: string, ref: ObjectRef, change: (old: ApiObject) => ApiObject, expected?: string): never => {
    const old = present(plural, ref);
    const left = refusals.get(plural) ?? 0;
    refusals.set(plural, left - 1);
    if (left > 0 || (expected !== undefined && expected !== old.metadata.resourceVersion))
      throw refused('conflict', 409);
    const next = change(old);
    if (JSON.stringify(next) === JSON.stringify(old)) return old as never;
    const isNewSpec = JSON.stringify(json(next)['spec']) !== JSON.stringify(json(old)['spec']);
    const generation = (old.metadata.generation ?? 1) + (isNewSpec ? 1 : 0);
    return publish('MODIFIED', plural, next, { generation }) as never;
  };
  const list = (plural: string, { namespace, labelSelector }: { namespace?: string; labelSelector?: string }) => {
    const wanted = Object.fromEntries(
      (labelSelector ?? '')
        .split(',')
        .filter(Boolean)
        .map((text) => text.split('=')),
    );
    return [...stored]
      .filter(([key]) => key.startsWith(`${plural}/${namespace === undefined ? '' : `${namespace}/`}`))
      .map(([, object]) => object)
      .filter((object) => matchesLabels(wanted, object.metadata.labels));
  };
  const remove = (plural: string, ref: ObjectRef, options: DeleteOptions): void => {
    const old = present(plural, ref);
    const spec = (old as Pod).spec;
    const grace = options.gracePeriodSeconds ?? spec?.terminationGracePeriodSeconds ?? 30;
    const isGraceful = plural === 'pods' && spec?.nodeName !== undefined;
    if (isGraceful && (grace > 0 || old.metadata.deletionGracePeriodSeconds !== 0)) {
      const deletionTimestamp = `${new Date(clock.now() + grace * 1000).toISOString().slice(0, 19)}Z`;
      publish('MODIFIED', plural, old, { deletionTimestamp, deletionGracePeriodSeconds: grace });
    }
    if (!isGraceful || grace === 0) publish('DELETED', plural, present(plural, ref));
    for (const [key, object] of stored) {
      if (stored.has(keyOf(plural, ref))) return;
      const isOwned = object.metadata.ownerReferences?.some(({ uid }) => uid === old.metadata.uid);
      if (isOwned) remove(key.slice(0, key.indexOf('/')), { ...(object.metadata as ObjectRef) }, {});
    }
  };
  const api: MemoryApi = {
    events,
    objects: (resource) => list(resource.plural, {}) as never,
    refuseWrites: (resource, count) => refusals.set(resource.plural, count),
    get: async (resource, ref) => present(resource.plural, ref) as never,
    find: async (resource, ref) => stored.get(keyOf(resource.plural, ref)) as never,
    list: async (resource, options) => ({
      items: list(resource.plural, options) as never,
      resourceVersion: String(version),
    }),
    create: async (resource, object) => {
      const namespace = object.metadata.namespace ?? 'default';
      if (stored.has(keyOf(resource.plural, { namespace, name: object.metadata.name ?? '' }))) {
        throw refused('already-exists', 409);
      }
      const meta = { namespace, uid: `uid-${version + 1}`, generation: 1, creationTimestamp: at() };
      return publish('ADDED', resource.plural, object, meta) as never;
    },
    send: async () => {
      throw new Error('the API in memory has no paths');
    },
    tryCreate: async (_, object) => object,
    update: async (resource, object) =>
      write(
        resource.plural,
        object.metadata as ObjectRef,
        (old) => ({ ...object, ...('status' in old ? { status: old.status } : {}) }),
        object.metadata.resourceVersion,
      ),
    updateStatus: async (resource, object) =>
      write(
        resource.plural,
        object.metadata as ObjectRef,
        (old) => ({ ...old, metadata: object.metadata, status: json(object)['status'] }) as ApiObject,
        object.metadata.resourceVersion,
      ),
    patch: async (resource, ref, patch) =>
      write(resource.plural, ref, (old) => applyMergePatch(old as never, patch.body as never) as unknown as ApiObject),
    delete: async (resource, ref, options) => remove(resource.plural, ref, options),
    watch: (resource, options, signal) => follow(resource.plural, list(resource.plural, options), watchers, signal),
    [Symbol.asyncDispose]: async () => undefined,
  };
  return api;
}

async function* follow<T>(
  plural: string,
  items: readonly ApiObject[],
  watchers: Set<(event: MemoryEvent) => void>,
  signal: AbortSignal,
): AsyncGenerator<ObjectEvent<T>> {
  const queue: MemoryEvent[] = [];
  let wake = (): void => undefined;
  watchers.add((event) => {
    if (event.resource === plural) queue.push(event);
    wake();
  });
  signal.addEventListener('abort', () => wake());
  yield { kind: 'listed', items: items as never, resourceVersion: '0' };
  while (!signal.aborted) {
    const event = queue.shift();
    if (event === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    const kind = event.type === 'DELETED' ? 'deleted' : 'changed';
    yield { kind, object: event.object as never };
  }
}

function refused(reason: string, status: number): ApiServerError {
  return new ApiServerError(`api.${reason}`, `the API in memory answered ${reason}`, { isRetryable: false, status });
}

function json(object: ApiObject): Json {
  return object as unknown as Json;
}
