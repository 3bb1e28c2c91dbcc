import { type DataplaneName, dataplaneNames } from '@switchyard/scenarios';
import { ConfigError } from '@switchyard/core';
import type { TrafficPod } from './start-pods.ts';
import { callPod, type Caller } from './traffic-caller.ts';

/** Port at which kube-proxy and its replacements report their mode. */
const metricsPort = 10_249;

/** Mode that the proxy on the node under test reports. Rejects with `ConfigError` if it reports none, or an unknown one. */
export async function askProxyMode(caller: Caller, node: TrafficPod, signal: AbortSignal): Promise<DataplaneName> {
  const probes = ['127.0.0.1', '::1'].map(
    (address) => ({ protocol: 'http', address, port: metricsPort, path: '/proxyMode' }) as const,
  );
  const { results } = await callPod(caller, node, { name: 'probe', argument: { probes } }, signal);
  const answer = results.find((result) => result.status === 'answered' && result.httpStatus === 200);
  const said = answer?.status === 'answered' ? answer.body.trim() : undefined;
  const mode = dataplaneNames.find((one) => one === said);
  if (mode !== undefined) return mode;
  throw new ConfigError(
    'cluster.mode',
    `the proxy of node ${node.node} ${said === undefined ? `does not say its mode at 127.0.0.1:${metricsPort}/proxyMode` : `says its mode is ${said}`}; ` +
      `give the expected dataplane by --mode ${dataplaneNames.join('|')}`,
  );
}
