import { type DataplaneName, dataplaneNames } from '@switchyard/scenarios';
import { ConfigError } from '@switchyard/core';
import type { TrafficPod } from './start-pods.ts';
import { callPod, type Caller } from './traffic-caller.ts';

/** Where kube-proxy, and what takes its place, says its mode. */
const metricsPort = 10_249;

/** What the proxy on the node under test says of itself. Rejects with `ConfigError` where that is nothing known. */
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
      `say by --mode ${dataplaneNames.join('|')} whose answers are to be expected`,
  );
}
