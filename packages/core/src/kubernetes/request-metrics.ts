import { type Metrics, noopMetrics } from '../metrics/metrics.ts';
import type { Clock } from '../base/time.ts';
import { portOf } from './api-request.ts';

/** Measurement of one request in progress. */
export interface RequestMeasure {
  /** Counts one attempt by its status; undefined: no answer. */
  answered(status: number | undefined): void;
  /** Records the duration when reading has ended. */
  ended(): void;
}

/** A request to measure. */
export interface MeasuredRequest {
  readonly url: URL;
  readonly method: string;
  /** The duration of a watch says nothing about the server, so it is not recorded. */
  readonly isWatch: boolean;
}

/** Starts measuring a request to an API server, with the metrics of Kubernetes' own clients. */
export function measureRequest(
  { url, method, isWatch }: MeasuredRequest,
  { clock, metrics = noopMetrics }: { readonly clock: Clock; readonly metrics?: Metrics },
): RequestMeasure {
  const start = clock.monotonic();
  const host = `${url.hostname}:${portOf(url)}`;
  return {
    answered: (status) => {
      const code = status === undefined ? '<error>' : String(status);
      metrics.add('rest_client_requests_total', { code, host, method });
    },
    ended: () => {
      const duration = (clock.monotonic() - start) / 1000;
      if (!isWatch) metrics.observe('rest_client_request_duration_seconds', { host, verb: method }, duration);
    },
  };
}
