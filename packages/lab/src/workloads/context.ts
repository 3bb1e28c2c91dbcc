import {
  type ApiObject,
  type ApiResource,
  apiResources,
  type Deployment,
  type EndpointSlice,
  type Node,
  type ObjectClient,
  type Pod,
  type Service,
} from '@switchyard/core/kubernetes';
import type { Clock, Logger, Random } from '@switchyard/core';
import { objectKey, type TimeScale } from './facts.ts';

/** One object changed. Undefined means that the object does not exist. */
interface ObjectChange<T> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

/** Watch and cache of the objects of one resource in all namespaces. It lags behind the API server. */
export interface ResourceWatch<T extends ApiObject> {
  get(key: string): T | undefined;
  values(): Iterable<T>;
  /** Called once per changed object, the first list included, in the order of the stream. */
  subscribe(onChange: (change: ObjectChange<T>) => void): void;
  /** Resolves after the first full list; rejects if it will never come. */
  readonly listed: Promise<void>;
  /** Follows until aborted. Subscribe first. */
  run(signal: AbortSignal): Promise<void>;
}

/** An empty cache for `resource`. Keys are `namespace/name` (`default/name` for cluster-scoped objects). */
export function createResourceWatch<T extends ApiObject>(
  api: ObjectClient,
  resource: ApiResource<T>,
): ResourceWatch<T> {
  const objects = new Map<string, T>();
  const subscribers: ((change: ObjectChange<T>) => void)[] = [];
  const listed = Promise.withResolvers<void>();
  listed.promise.catch(() => undefined); // callers await `listed` themselves
  const publish = (change: ObjectChange<T>): void => {
    for (const subscriber of subscribers) subscriber(change);
  };
  const put = (object: T): void => {
    const key = objectKey(object);
    const before = objects.get(key);
    if (before !== undefined && before.metadata.resourceVersion === object.metadata.resourceVersion) return;
    objects.set(key, object);
    if (before !== undefined && before.metadata.uid !== object.metadata.uid) {
      publish({ before, after: undefined }); // deleted and created again while the watch was disconnected
      publish({ before: undefined, after: object });
    } else publish({ before, after: object });
  };
  const remove = (key: string, last?: T): void => {
    const before = objects.get(key);
    objects.delete(key);
    if (before !== undefined) publish({ before: last ?? before, after: undefined });
  };
  return {
    get: (key) => objects.get(key),
    values: () => objects.values(),
    subscribe: (onChange) => subscribers.push(onChange),
    listed: listed.promise,
    run: async (signal) => {
      try {
        for await (const event of api.watch(resource, {}, signal)) {
          if (event.kind === 'listed') {
            const present = new Set(event.items.map(objectKey));
            for (const key of objects.keys()) if (!present.has(key)) remove(key);
            for (const object of event.items) put(object);
            listed.resolve();
          } else if (event.kind === 'deleted') remove(objectKey(event.object), event.object);
          else put(event.object);
        }
        listed.reject(signal.reason);
      } catch (error) {
        listed.reject(error);
        throw error;
      }
    },
  };
}

/** Dependencies shared by all controllers. */
export interface ControllerContext {
  readonly api: ObjectClient;
  readonly watches: ClusterWatches;
  readonly scale: TimeScale;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** One shared watch per resource. */
export interface ClusterWatches {
  readonly pods: ResourceWatch<Pod>;
  readonly nodes: ResourceWatch<Node>;
  readonly services: ResourceWatch<Service>;
  readonly slices: ResourceWatch<EndpointSlice>;
  readonly deployments: ResourceWatch<Deployment>;
}

/** Watches that do not run yet. */
export function createClusterWatches(api: ObjectClient): ClusterWatches {
  return {
    pods: createResourceWatch(api, apiResources.pods),
    nodes: createResourceWatch(api, apiResources.nodes),
    services: createResourceWatch(api, apiResources.services),
    slices: createResourceWatch(api, apiResources.endpointSlices),
    deployments: createResourceWatch(api, apiResources.deployments),
  };
}
