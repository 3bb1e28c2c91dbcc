import * as check from '../base/argument.ts';
import type { Logger } from '../base/log.ts';
import { type Clock, type Millis, type Random, millis, sleepUntil } from '../base/time.ts';
import { type ApiClient, type RawObject, newApiClient } from './api-client.ts';
import { type ApiServerAddresses, type ApiServerConnection, requireConnection } from './api-server-connection.ts';
import { OutageWaits } from './outages.ts';
import {
  type ReflectorTimings,
  defaultTimings,
  type NodeScope,
  type ResourceQuery,
  resourceQueries,
} from './resources.ts';
import { Reflector, type ReflectorOptions } from './reflector.ts';
import type { SourceMetrics } from './source-metrics.ts';
import {
  type Projected,
  type ProjectionContext,
  type RawObjects,
  newProjectionContext,
  projections,
  type SkippedPart,
} from './to-records.ts';
import { type Metrics, noopMetrics } from '../metrics/metrics.ts';
import type { ClusterEvent, Records, ResourceKind, ClusterStateSource } from '../model/state/cluster-event.ts';

/** Options of a Kubernetes source. */
export interface KubernetesSourceOptions {
  readonly connection: ApiServerConnection;
  readonly nodes: NodeScope;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Sent as `User-Agent`, for example `switchyard-agent/1.0`. */
  readonly userAgent?: string;
  /** Receives measurements of requests. Default: none. */
  readonly metrics?: Metrics;
  /** Receives measurements of watches. Default: none. */
  readonly sourceMetrics?: SourceMetrics;
  /** Collects the destination addresses of connections. Default: not collected. */
  readonly addresses?: ApiServerAddresses;
  readonly timings?: Partial<ReflectorTimings>;
  readonly merge?: Partial<Omit<MergeOptions, 'clock'>>;
}

/**
 * Cluster state from an API server: one reflector per resource over kept-alive connections, merged into
 * batches. It never ends by itself: during outages, expired credentials or overload it waits, delivers nothing, and logs
 * their start and end.
 */
export class KubernetesSource implements ClusterStateSource {
  readonly #options: KubernetesSourceOptions;

  /** Throws `UsageError` for options of other types. */
  constructor(options: KubernetesSourceOptions) {
    check.requireFields('KubernetesSource: options', options, {
      connection: requireConnection,
      nodes: requireNodeScope,
      clock: check.requireClock,
      random: check.requireFunction,
      log: check.requireLogger,
      userAgent: check.optional(check.requireText),
      metrics: check.optional(check.requireMetrics),
      sourceMetrics: check.optional(check.withMethods('heard', 'listed', 'ended')),
      addresses: check.optional(check.withMethods('note')),
      timings: check.optional(check.objectArgument),
      merge: check.optional(check.objectArgument),
    });
    this.#options = options;
  }

  /** Starts its own reflectors; leaving the loop stops them and closes their connections. */
  async *batches(signal: AbortSignal): AsyncGenerator<readonly ClusterEvent[]> {
    if (signal.aborted) return;
    const { clock, connection, log, merge, metrics = noopMetrics, nodes, userAgent = 'switchyard' } = this.#options;
    const merger = newBatchMerger({ ...defaultMerge, ...merge, clock });
    const context = newProjectionContext(newSkippedLog(log));
    const connectLimit = this.#options.timings?.connect ?? defaultTimings.connect;
    const waits = new OutageWaits(clock);
    const queries = resourceQueries(nodes);
    const stop = new AbortController();
    const stopped = AbortSignal.any([signal, stop.signal]);
    const broken = new AbortController();
    const { addresses } = this.#options;
    const onAddress = (address: string): void => addresses?.note(address);
    await using client = newApiClient(connection, { clock, metrics, userAgent, connectLimit, onAddress });
    const parts = { client, context, deliver: merger.push, waits };
    const reflectors = [queries.Service, queries.EndpointSlice, queries.Node, queries.ServiceCIDR].map((query) =>
      this.#reflect(query as ResourceQuery<ResourceKind>, parts, stopped).catch((error: unknown) => {
        if (!stopped.aborted) broken.abort(error); // a defect: the consumer must get the error
      }),
    );
    try {
      yield* merger.batches(AbortSignal.any([stopped, broken.signal]));
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      stop.abort();
      await Promise.all(reflectors);
    }
  }

  #reflect<K extends ResourceKind>(
    query: ResourceQuery<K>,
    { context, ...parts }: ReflectorParts,
    signal: AbortSignal,
  ): Promise<never> {
    const { clock, log, random, sourceMetrics } = this.#options;
    const project = (raw: RawObject): Projected<Records[K]> => {
      const projected = projections[query.kind](raw as RawObjects[K], context); // the path determines the type
      // The other reasons are ordinary: objects that the proxy ignores.
      if (projected.status === 'ignored' && ['addressType', 'malformed'].includes(projected.reason)) {
        context.onSkipped({ resource: query.kind, name: projected.name, path: '', value: projected.reason });
      }
      return projected;
    };
    const timings = { ...defaultTimings, ...this.#options.timings };
    const deliver = parts.deliver as ReflectorOptions<K, Records[K]>['deliver']; // of one K; TypeScript distributes the union
    const options = { query, ...parts, deliver, project, clock, random, log, timings, sourceMetrics };
    return new Reflector<K, Records[K]>(options).run(signal);
  }
}

function requireNodeScope(name: string, value: unknown): void {
  const { kind, name: node } = check.objectArgument(name, value);
  check.oneOf('one', 'all')(`${name}.kind`, kind);
  if (kind === 'one') check.requireText(`${name}.name`, node);
}

interface ReflectorParts {
  readonly client: ApiClient;
  readonly deliver: (event: ClusterEvent) => void;
  readonly waits: OutageWaits;
  readonly context: ProjectionContext;
}

/** Bounds of merging. */
export interface MergeOptions {
  readonly clock: Clock;
  /** Time since the last delivery after which an event is delivered at once. */
  readonly idle: Millis;
  /** No event waits longer than this, counted from its arrival (unless the consumer is busy). */
  readonly maxDelay: Millis;
  /** Pause that ends a flood; the events so far form a batch. */
  readonly quiet: Millis;
  /** Number of events that are delivered without further waiting. */
  readonly maxEvents: number;
}

/** Events in, batches out. One consumer. */
export interface BatchMerger {
  /** Adds an event. Cheap; never blocks. */
  push(event: ClusterEvent): void;
  /**
   * Batches in first-seen order, never empty. The first event after `idle` is delivered at once,
   * together with what was pushed in the same turn; a flood is merged. A later event
   * of an object replaces the earlier one, a `replace` all earlier ones of its resource, so the queue
   * for a slow consumer is bounded by the number of objects. Rejects with `signal.reason`.
   */
  batches(signal: AbortSignal): AsyncGenerator<readonly ClusterEvent[]>;
}

/**
 * The bounds of a node agent: related objects written together arrive within a few milliseconds (A15). A batch costs less
 * than a millisecond from here to the kernel, so steady changes need no more merging. Changes during a longer apply merge in
 * the busy family.
 */
const defaultMerge: Omit<MergeOptions, 'clock'> = {
  idle: millis(10),
  maxDelay: millis(20),
  quiet: millis(2),
  maxEvents: 1000,
};

/** Returns an empty merger. */
export function newBatchMerger({ clock, idle, maxDelay, quiet, maxEvents }: MergeOptions): BatchMerger {
  const pending = new PendingEvents();
  let oldest = 0;
  let newest = 0;
  let delivered = Number.NEGATIVE_INFINITY;
  let arrived = Promise.withResolvers<void>();
  let full = Promise.withResolvers<void>();

  const push = (event: ClusterEvent): void => {
    newest = clock.monotonic();
    if (pending.size === 0) oldest = newest;
    pending.add(event);
    arrived.resolve();
    if (pending.size >= maxEvents) full.resolve();
  };

  const settle = async (signal: AbortSignal): Promise<void> => {
    if (oldest - delivered >= idle) return;
    while (pending.size < maxEvents && !signal.aborted) {
      const wait = Math.min(oldest + maxDelay, newest + quiet) - clock.monotonic();
      if (wait <= 0) return;
      await sleepUntil(full.promise, { clock, duration: millis(wait) }, signal);
    }
  };

  return {
    push,
    async *batches(signal) {
      const onAbort = (): void => {
        arrived.resolve();
        full.resolve();
      };
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        for (;;) {
          signal.throwIfAborted();
          await arrived.promise;
          await settle(signal);
          signal.throwIfAborted();
          delivered = clock.monotonic();
          arrived = Promise.withResolvers();
          full = Promise.withResolvers();
          yield pending.take();
        }
      } finally {
        signal.removeEventListener('abort', onAbort);
      }
    },
  };
}

/** Waiting events in first-seen order: a Map keeps the place of a key whose value is replaced. */
class PendingEvents {
  #events = new Map<string, ClusterEvent>();

  get size(): number {
    return this.#events.size;
  }

  add(event: ClusterEvent): void {
    if (event.kind !== 'replace') {
      const name = event.kind === 'delete' ? event.name : 'key' in event.item ? event.item.key : event.item.name;
      this.#events.set(`${event.resource} ${name}`, event);
      return;
    }
    for (const [key, earlier] of this.#events) if (earlier.resource === event.resource) this.#events.delete(key);
    this.#events.set(event.resource, event);
  }

  take(): readonly ClusterEvent[] {
    const taken = [...this.#events.values()];
    this.#events = new Map();
    return taken;
  }
}

/** Limit of remembered faults. */
const maxRemembered = 1000;

/**
 * Returns a function that logs each omitted part of an object once, not again with every relist. An empty path stands
 * for the whole object. At the limit of remembered faults it starts over.
 */
function newSkippedLog(log: Logger): (part: SkippedPart) => void {
  const seen = new Set<string>();
  return ({ resource, name, path, value }) => {
    const text = JSON.stringify(value);
    const key = `${resource} ${name} ${path} ${text}`;
    if (seen.has(key)) return;
    if (seen.size >= maxRemembered) seen.clear();
    seen.add(key);
    if (path === '') log.warn('object is not usable and left out', { resource, name, reason: value });
    else log.warn('part of an object is not usable and left out', { resource, name, path, value: text.slice(0, 200) });
  };
}
