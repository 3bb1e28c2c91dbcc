import {
  type Clock,
  HostError,
  type HttpAnswer,
  type HttpListener,
  healthzAnswer,
  type IpAddress,
  ipFamilyOf,
  jsonAnswer,
  type ListenTarget,
  livezAnswer,
  type Logger,
  type Metrics,
  type Port,
  type ProxyHealth,
  seconds,
} from '@switchyard/core';

/** What the server of /healthz and /livez needs. */
export interface HttpEndpointsOptions {
  readonly address: IpAddress;
  readonly port: Port;
  readonly listener: HttpListener;
  readonly health: () => ProxyHealth;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const retryInterval = seconds(5);

/**
 * Serves /healthz and /livez until aborted. A port that cannot be had is tried again every five
 * seconds and costs nothing else: the dataplane goes on.
 */
export async function serveHttpEndpoints(options: HttpEndpointsOptions, signal: AbortSignal): Promise<void> {
  await using server = await openServer(options, signal);
  if (server !== undefined && !signal.aborted) await aborted(signal);
}

async function openServer(options: HttpEndpointsOptions, signal: AbortSignal): Promise<AsyncDisposable | undefined> {
  const { listener, clock, logger, address, port } = options;
  let hasFailed = false;
  while (!signal.aborted) {
    try {
      const server = await listener.listen(targetOf(address, port), ({ path }) => answer(path, options));
      logger.info('healthz listens', { address, port });
      return server;
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      if (!hasFailed) logger.warn('healthz cannot listen, will retry', { error });
      hasFailed = true;
      await clock.sleep(retryInterval, signal).catch(() => undefined); // the loop sees the abort
    }
  }
  return undefined;
}

/** As in Go, every address means every address of both families. */
function targetOf(address: IpAddress, port: Port): ListenTarget {
  const isAny = address === '0.0.0.0' || address === '::';
  return isAny ? { ipFamily: 'both', address: 'any', port } : { ipFamily: ipFamilyOf(address), address, port };
}

function answer(path: string, { health, clock, metrics }: HttpEndpointsOptions): HttpAnswer {
  if (path === '/healthz') {
    const result = healthzAnswer(health(), clock.now());
    metrics.add('kubeproxy_proxy_healthz_total', { code: String(result.status) });
    return result;
  }
  if (path === '/livez') {
    const result = livezAnswer(health(), clock.now());
    metrics.add('kubeproxy_proxy_livez_total', { code: String(result.status) });
    return result;
  }
  return jsonAnswer(404, { error: 'there is only /healthz and /livez' });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
