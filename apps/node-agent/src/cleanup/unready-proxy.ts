import { get } from 'node:http';
import { HostError, type Millis, seconds } from '@switchyard/core';

/** Returns the metrics page of the kube-proxy in this network namespace; undefined if none answers in time. */
export type AskMetrics = () => Promise<string | undefined>;

const timeout: Millis = seconds(3);
/** kube-proxy's default for `metricsBindAddress`. */
const place = { host: '127.0.0.1', port: 10_249, path: '/metrics' } as const;

/** Asks on kube-proxy's usual metrics port, on loopback. */
export const askMetrics: AskMetrics = () =>
  new Promise((resolve) => {
    const request = get({ ...place, agent: false, signal: AbortSignal.timeout(timeout) }, (response) => {
      let page = '';
      response.setEncoding('utf8').on('data', (piece: string) => (page += piece));
      response.on('end', () => resolve(response.statusCode === 200 ? page : undefined));
      response.on('error', () => resolve(undefined));
    });
    request.on('error', () => resolve(undefined));
  });

/**
 * Throws `HostError` if a kube-proxy runs here that has not written its rules yet: then only the agent's rules forward Services.
 * Its health port does not show this, because kube-proxy counts as healthy until its first write. A proxy that exports none of
 * kube-proxy's metrics on the usual port is ignored.
 */
export async function refuseBesideUnreadyProxy(ask: AskMetrics = askMetrics): Promise<void> {
  const page = await ask();
  if (page === undefined || !/^kubeproxy_/m.test(page)) return;
  const times = [...page.matchAll(/^kubeproxy_sync_proxy_rules_last_timestamp_seconds(?:\{[^}]*\})? (\S+)$/gm)];
  if (times.some(([, time]) => Number(time) > 0)) return;
  throw new HostError(
    'cleanup.unreadyProxy',
    'cannot clean up: the kube-proxy on this node has not written its rules yet (http://127.0.0.1:10249/metrics has no ' +
      'kubeproxy_sync_proxy_rules_last_timestamp_seconds above 0), so no rules would forward Services; nothing was removed; ' +
      'see its log and try again when it has written them, or stop it first to remove our rules anyway',
  );
}
