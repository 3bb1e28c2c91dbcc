import type { Metrics } from '../metrics.ts';
import type { ResourceKind } from '../state/cluster-event.ts';
import { type Clock, type Millis, millis } from '../time.ts';
import { type ApiFailure, isCut, isExpired, isSilent } from './api-failure.ts';

/**
 * Why a watch or a list ended. `ended`: as the server does every few minutes. `refused`: a status other than 410.
 * `unreachable`: no answer, or one that makes no sense.
 */
export type RestartReason = 'ended' | 'cut' | 'silent' | 'expired' | 'refused' | 'unreachable';

/** What the reflectors of one API server tell of themselves. */
export class SourceMetrics {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #lastWords = new Map<ResourceKind, Millis>();

  constructor(metrics: Metrics, clock: Clock) {
    this.#metrics = metrics;
    this.#clock = clock;
  }

  /** Something came from the watch of a resource: a change, a bookmark, or a full list. */
  heard(resource: ResourceKind): void {
    this.#lastWords.set(resource, this.#clock.monotonic());
  }

  /** A resource was listed in full. */
  listed(resource: ResourceKind): void {
    this.heard(resource);
    this.#metrics.add('switchyard_source_relists_total', { resource });
    this.#metrics.set(
      'switchyard_source_last_relist_timestamp_seconds',
      { resource },
      Math.round(this.#clock.now()) / 1000,
    );
  }

  /** A watch or a list ended; undefined: without a failure. */
  ended(resource: ResourceKind, failure: ApiFailure | undefined): void {
    this.#metrics.add('switchyard_source_watch_restarts_total', { reason: restartReason(failure), resource });
  }

  /** Time since the last word of each resource that was ever heard of. */
  lags(): ReadonlyMap<ResourceKind, Millis> {
    const now = this.#clock.monotonic();
    return new Map([...this.#lastWords].map(([resource, at]) => [resource, millis(now - at)]));
  }
}

function restartReason(failure: ApiFailure | undefined): RestartReason {
  if (failure === undefined) return 'ended';
  if (isExpired(failure)) return 'expired';
  if (isCut(failure)) return 'cut';
  if (isSilent(failure)) return 'silent';
  return failure.status === undefined ? 'unreachable' : 'refused';
}
