import { type Metrics, noopMetrics } from '../metrics/metrics.ts';
import type { Clock } from '../base/time.ts';
import { portOf } from './api-request.ts';

/** One request, measured while it happens. */
export interface RequestMeasure {
  /** A status came, or nothing (undefined). Once per attempt. */
  answered(status: number | undefined): void;
  /** Nothing more of it is read. */
  ended(): void;
}

/** Which request is measured, and with what. */
export interface MeasuredRequest {
  readonly url: URL;
  readonly method: string;
  /** The duration of a watch is that of the cluster's quiet, so it is not recorded. */
  readonly isWatch: boolean;
}

/** Begins to measure a request to an API server as Kubernetes' own clients do. */
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
