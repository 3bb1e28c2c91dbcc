import type { Metrics } from '../metrics/metrics.ts';
import type { ResourceKind } from '../model/state/cluster-event.ts';
import { maxSourceSilence } from '../engine/reconcile/heartbeat.ts';
import { type Clock, type Millis, millis } from '../base/time.ts';
import { type ApiFailure, isCut, isExpired, isSilent } from './api-failure.ts';

/**
 * Why a watch or a list ended. `ended`: as the server does every few minutes. `refused`: a status other than 410.
 * `unreachable`: no answer, or one that makes no sense.
 */
export type RestartReason = 'ended' | 'cut' | 'silent' | 'expired' | 'refused' | 'unreachable';

/** Resources that every API server serves. ServiceCIDR may be missing. */
const alwaysServed: readonly ResourceKind[] = ['Service', 'EndpointSlice', 'Node'];

/** Measurements of the reflectors of one API server. */
export class SourceMetrics {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #lastWords: Map<ResourceKind, Millis>;
  readonly #onRestored: (silence: Millis) => void;

  /** `onRestored` is called when the silence ends after `maxSourceSilence` or longer, with its length. */
  constructor(metrics: Metrics, clock: Clock, onRestored: (silence: Millis) => void = () => undefined) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#onRestored = onRestored;
    this.#lastWords = new Map(alwaysServed.map((resource) => [resource, clock.monotonic()]));
  }

  /** The longest time without a word about a resource that every API server serves, from the start of this object on. */
  get silence(): Millis {
    const oldest = Math.min(...alwaysServed.map((resource) => this.#lastWords.get(resource) ?? 0));
    return millis(this.#clock.monotonic() - oldest);
  }

  /** The watch of a resource said something: a change, a bookmark, a full list, or an answer after an outage. */
  heard(resource: ResourceKind): void {
    const before = this.silence;
    this.#lastWords.set(resource, this.#clock.monotonic());
    if (before >= maxSourceSilence && this.silence < maxSourceSilence) this.#onRestored(before);
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

  /** Time since the last word of each resource, or since the start; without ServiceCIDR while that was never heard of. */
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
