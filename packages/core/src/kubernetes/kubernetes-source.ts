import type { Logger } from '../log.ts';
import { type Metrics, noopMetrics } from '../metrics.ts';
import type { ClusterEvent, Records, ResourceKind } from '../state/cluster-event.ts';
import type { ClusterStateSource } from '../state/cluster-state-source.ts';
import type { Clock, Random } from '../time.ts';
import { newApiClient, type ApiClient } from './api-client.ts';
import type { ApiServerAddresses } from './api-server-addresses.ts';
import type { ApiServerConnection } from './api-server-connection.ts';
import { defaultMerge, newBatchMerger, type MergeOptions } from './merge-batches.ts';
import { OutageWaits } from './outage-waits.ts';
import { Reflector } from './reflector.ts';
import { defaultTimings, type ReflectorTimings } from './reflector-timings.ts';
import { resourceQueries, type NodeScope, type ResourceQuery } from './resources.ts';
import type { SourceMetrics } from './source-metrics.ts';
import { newSkippedLog } from './skipped-log.ts';
import {
  newProjectionContext,
  projections,
  type Projected,
  type ProjectionContext,
  type RawObjects,
} from './to-records.ts';
import type { RawObject } from './watch-stream.ts';

/** What a Kubernetes source needs. */
export interface KubernetesSourceOptions {
  readonly connection: ApiServerConnection;
  readonly nodes: NodeScope;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Sent as `User-Agent`, for example `switchyard-agent/1.0`. */
  readonly userAgent?: string;
  /** Where requests are measured. Default: nowhere. */
  readonly metrics?: Metrics;
  /** Told what the watches hear. Default: nobody. */
  readonly sourceMetrics?: SourceMetrics;
  /** Notes where connections go. Default: not noted. */
  readonly addresses?: ApiServerAddresses;
  readonly timings?: Partial<ReflectorTimings>;
  readonly merge?: Partial<Omit<MergeOptions, 'clock'>>;
}

/**
 * Cluster state from an API server: one reflector per resource over kept-alive connections, merged into
 * batches. It never gives up: an unreachable server, expired credentials or an overload are waited out,
 * logged when they begin and when they end, and deliver nothing in between.
 */
export class KubernetesSource implements ClusterStateSource {
  readonly #options: KubernetesSourceOptions;

  constructor(options: KubernetesSourceOptions) {
    this.#options = options;
  }

  /** Starts reflectors of its own; leaving the loop stops them and closes their connections. */
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
    const reflectors = [queries.Service, queries.EndpointSlice, queries.Node, queries.ServiceCIDR].map((query) =>
      this.#reflect(
        query as ResourceQuery<ResourceKind>,
        { client, context, deliver: merger.push, waits },
        stopped,
      ).catch((error: unknown) => {
        if (!stopped.aborted) broken.abort(error); // a defect of ours: the consumer must learn of it
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
    parts: ReflectorParts,
    signal: AbortSignal,
  ): Promise<never> {
    const { clock, log, random, sourceMetrics, timings } = this.#options;
    const project = (raw: RawObject): Projected<Records[K]> => {
      const projected = projections[query.kind](raw as RawObjects[K], parts.context); // the path says what it is
      // The other reasons are everyday: objects that are somebody else's business.
      if (projected.status === 'ignored' && ['addressType', 'malformed'].includes(projected.reason)) {
        parts.context.onSkipped({ resource: query.kind, name: projected.name, path: '', value: projected.reason });
      }
      return projected;
    };
    const reflector = new Reflector<K>({
      query,
      client: parts.client,
      project,
      deliver: parts.deliver,
      clock,
      random,
      log,
      timings: { ...defaultTimings, ...timings },
      sourceMetrics,
      waits: parts.waits,
    });
    return reflector.run(signal);
  }
}

interface ReflectorParts {
  readonly client: ApiClient;
  readonly context: ProjectionContext;
  readonly deliver: (event: ClusterEvent) => void;
  readonly waits: OutageWaits;
}
