import { type Metrics, noopMetrics } from '../metrics/metrics.ts';
import type { Clock } from '../base/time.ts';

/** One request, measured while it happens. */
export interface RequestMeasure {
  /** A status came, or nothing (undefined). Once per attempt. */
  answered(status: number | undefined): void;
  /** Nothing more of it is read. */
  ended(): void;
}

/** Measures requests to one API server as Kubernetes' own clients do. */
export class RequestMetrics {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #host: string;

  constructor(url: URL, { clock, metrics = noopMetrics }: { readonly clock: Clock; readonly metrics?: Metrics }) {
    this.#metrics = metrics;
    this.#clock = clock;
    const defaultPort = url.protocol === 'https:' ? '443' : '80';
    this.#host = `${url.hostname}:${url.port === '' ? defaultPort : url.port}`;
  }

  /** A request begins. The duration of a watch is that of the cluster's quiet, so it is not recorded. */
  begin(method: string, isWatch: boolean): RequestMeasure {
    const start = this.#clock.monotonic();
    const host = this.#host;
    return {
      answered: (status) => {
        const code = status === undefined ? '<error>' : String(status);
        this.#metrics.add('rest_client_requests_total', { code, host, method });
      },
      ended: () => {
        if (isWatch) return;
        const duration = (this.#clock.monotonic() - start) / 1000;
        this.#metrics.observe('rest_client_request_duration_seconds', { host, verb: method }, duration);
      },
    };
  }
}
