import { requireClock, requireFunction, requireMetrics } from '../base/argument.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { ResourceKind } from '../model/state/cluster-event.ts';
import { maxSourceSilence } from '../engine/reconcile/heartbeat.ts';
import { type Clock, type Millis, millis } from '../base/time.ts';
import { type ApiFailure, isCut, isExpired, isSilent } from './api-failure.ts';

/**
 * Reason for the end of a watch or a list. `ended`: by the server, as every few minutes. `refused`: a status other than 410.
 * `unreachable`: no answer, or an invalid one.
 */
export type RestartReason = 'ended' | 'cut' | 'silent' | 'expired' | 'refused' | 'unreachable';

/** Resources that every API server serves. ServiceCIDR may be missing. */
const alwaysServed: readonly ResourceKind[] = ['Service', 'EndpointSlice', 'Node'];

/** Measurements of the reflectors of one API server. */
export class SourceMetrics {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #lastHeard: Map<ResourceKind, Millis>;
  readonly #onRestored: (silence: Millis) => void;

  /** `onRestored` is called when the silence ends after `maxSourceSilence` or longer, with its length. Throws `UsageError` for arguments of other types. */
  constructor(metrics: Metrics, clock: Clock, onRestored: (silence: Millis) => void = () => undefined) {
    requireMetrics('SourceMetrics: metrics', metrics);
    requireClock('SourceMetrics: clock', clock);
    requireFunction('SourceMetrics: onRestored', onRestored);
    this.#metrics = metrics;
    this.#clock = clock;
    this.#onRestored = onRestored;
    this.#lastHeard = new Map(alwaysServed.map((resource) => [resource, clock.monotonic()]));
  }

  /** Longest time without data for a resource that every API server serves, counted from the creation of this object. */
  get silence(): Millis {
    const oldest = Math.min(...alwaysServed.map((resource) => this.#lastHeard.get(resource) ?? 0));
    return millis(this.#clock.monotonic() - oldest);
  }

  /** Notes data for a resource: a change, a bookmark, a full list, or an answer after an outage. */
  heard(resource: ResourceKind): void {
    const before = this.silence;
    this.#lastHeard.set(resource, this.#clock.monotonic());
    if (before >= maxSourceSilence && this.silence < maxSourceSilence) this.#onRestored(before);
  }

  /** Notes a complete list of a resource. */
  listed(resource: ResourceKind): void {
    this.heard(resource);
    this.#metrics.add('switchyard_source_relists_total', { resource });
    this.#metrics.set(
      'switchyard_source_last_relist_timestamp_seconds',
      { resource },
      Math.round(this.#clock.now()) / 1000,
    );
  }

  /** Counts the end of a watch or a list; undefined: without a failure. */
  ended(resource: ResourceKind, failure: ApiFailure | undefined): void {
    this.#metrics.add('switchyard_source_watch_restarts_total', { reason: restartReason(failure), resource });
  }

  /** Returns the time since the last data for each resource, or since the start; without ServiceCIDR before its first data. */
  lags(): ReadonlyMap<ResourceKind, Millis> {
    const now = this.#clock.monotonic();
    return new Map([...this.#lastHeard].map(([resource, at]) => [resource, millis(now - at)]));
  }
}

function restartReason(failure: ApiFailure | undefined): RestartReason {
  if (failure === undefined) return 'ended';
  if (isExpired(failure)) return 'expired';
  if (isCut(failure)) return 'cut';
  if (isSilent(failure)) return 'silent';
  return failure.status === undefined ? 'unreachable' : 'refused';
}
