import * as http from 'node:http';
import * as https from 'node:https';
import { isReset } from './api-failure.ts';
import type { ApiServerConnection } from './api-server-connection.ts';
import { type Metrics, noopMetrics } from '../metrics/metrics.ts';
import type { Clock } from '../base/time.ts';

/** Returns a pool of kept connections to an API server. The caller destroys it. */
export function newApiAgent({ url }: ApiServerConnection, settings: http.AgentOptions): http.Agent {
  return url.protocol === 'https:' ? new https.Agent(settings) : new http.Agent(settings);
}

/** Returns the port of a server; the protocol's default if the URL has none. */
export function portOf({ port, protocol }: URL): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}

/** Returns the target of a request: `path` with its query, below the server's own prefix. */
export function targetOf({ pathname }: URL, path: string): string {
  return `${pathname.replace(/\/$/, '')}${path}`;
}

/** One HTTP request. */
export interface HttpRequest {
  readonly method: string;
  readonly target: string;
  readonly userAgent: string;
  /** Pool of connections; undefined: a new connection. */
  readonly agent: http.Agent | undefined;
  /** Added to what every request sends. */
  readonly headers?: Readonly<Record<string, string | number>> | undefined;
  readonly body?: string | undefined;
  /** Called with each attempt. */
  readonly onAttempt?: (attempt: http.ClientRequest) => void;
}

/**
 * Sends a request with the connection's credentials. Repeats it if the server had closed a kept connection.
 * Resolves when the answer begins. Rejects with Node's error, also when `signal` aborts.
 */
export async function sendRequest(
  connection: ApiServerConnection,
  request: HttpRequest,
  signal: AbortSignal,
): Promise<http.IncomingMessage> {
  const { url, tls } = connection;
  const authorization = await connection.credentials.authorization(signal);
  const options: https.RequestOptions = {
    protocol: url.protocol,
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port,
    path: request.target,
    method: request.method,
    agent: request.agent ?? false,
    signal,
    ca: tls.ca,
    cert: tls.cert,
    key: tls.key,
    servername: tls.serverName,
    rejectUnauthorized: !tls.insecureSkipVerify,
    headers: {
      accept: 'application/json',
      'user-agent': request.userAgent,
      ...(authorization === undefined ? {} : { authorization }),
      ...request.headers,
    },
  };
  for (;;) {
    const attempt = url.protocol === 'https:' ? https.request(options) : http.request(options);
    request.onAttempt?.(attempt);
    try {
      return await new Promise((resolve, reject) => {
        // The error listener stays: an abort after the answer must not end the process.
        attempt.on('error', reject).on('response', resolve);
        attempt.end(request.body);
      });
    } catch (error) {
      if (signal.aborted || !attempt.reusedSocket || !isReset(error)) throw error;
    }
  }
}

/** Measurement of one request in progress. */
export interface RequestMeasure {
  /** Counts one attempt by its status; undefined: no answer. */
  answered(status: number | undefined): void;
  /** Records the duration when reading has ended. */
  ended(): void;
}

interface MeasuredRequest {
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
