import { type Clock, HostError, type IpAddress, type IpFamily, parseIp } from '@switchyard/core';
import { apiResources, type EndpointSlice } from '@switchyard/core/kubernetes';
import type { ClusterPlace } from './cluster-connector.ts';
import { runLabel } from './preflight.ts';
import { realPort } from './echo-pool.ts';
import type { TrafficPod } from './start-pods.ts';
import { callPod } from './traffic-caller.ts';

export interface MarkerPlace extends Pick<ClusterPlace, 'caller' | 'run' | 'senders'> {
  readonly clock: Clock;
  /** Pod behind the marker. */
  readonly endpoint: TrafficPod;
  readonly families: readonly IpFamily[];
  readonly onProgress: (text: string) => void;
}

export const markerPort: number = realPort(9_100);

/** Longest call, in milliseconds: proxies in front of API servers cut long calls off. */
const patience = 5_000;
const pause = 20;
/** Timeout of one attempt, in milliseconds. A lost SYN would be sent again after a second. */
const attemptTimeout = 300;
/** A proxy that does not serve a marker by then is taken to never do so, in milliseconds. */
const longest = 60_000;
const quietTime = 10_000;

/**
 * Writes a marker, waits until it answers in every family, and removes it: a Service by which packets show that the proxy has all that was
 * written before. Each is new, in name, cluster IP and port: it answers only for a proxy that has seen the Service and the slices, and so,
 * as each watch is in order, everything before. Rejects with `HostError` if it never answers.
 */
export async function passMarker(place: MarkerPlace, number: number, signal: AbortSignal): Promise<void> {
  const { caller, run, clock, families, onProgress } = place;
  const { api, namespace } = caller;
  const start = clock.monotonic();
  const name = `marker-${number}`;
  const port = 10_000 + (number % 10_000);
  const ipFamilyPolicy = families.length > 1 ? 'RequireDualStack' : 'SingleStack';
  const ports = [{ name: 'marker', port, protocol: 'TCP' }];
  const spec = { type: 'ClusterIP', ipFamilies: [...families], ipFamilyPolicy, ports };
  // The Service first: the marker only answers once the proxy has the slices as well.
  const metadata = { name, namespace, labels: { [runLabel]: run } };
  const service = await api.create(apiResources.services, { metadata, spec }, signal);
  const slices = families.map((family) => sliceOf(place, name, family));
  await Promise.all(slices.map((slice) => api.create(apiResources.endpointSlices, slice, signal)));
  let waiting: readonly IpAddress[] = (service.spec?.clusterIPs ?? []).map((ip) => parseIp(ip));
  if (waiting.length < families.length) {
    const got = waiting.join(', ') || 'no cluster IP';
    throw new HostError('cluster.marker', `the API server gave a Service of ${families.join(' and ')} ${got}`);
  }
  for (let isTold = false; ;) {
    const answered = await Promise.all(waiting.map((address) => answers(place, address, port, signal)));
    waiting = waiting.filter((_, index) => answered[index] !== true);
    if (waiting.length === 0) break;
    const waited = clock.monotonic() - start;
    if (waited > longest) {
      const what = `a new Service (${waiting.join(', ')} port ${port}, ${families.join(' and ')}) within ${longest / 1000} s`;
      throw new HostError(
        'cluster.marker',
        `the proxy on the node under test does not serve ${what}; does it run, and does the cluster have its addresses?`,
      );
    }
    if (waited > quietTime && !isTold) onProgress('waiting until the proxy serves a new Service');
    isTold ||= waited > quietTime;
  }
  await api.delete(apiResources.services, { namespace, name }, {}, signal);
  const removed = slices.map(({ metadata: slice }) => ({ namespace, name: slice.name ?? '' }));
  await Promise.all(removed.map((ref) => api.delete(apiResources.endpointSlices, ref, {}, signal)));
}

async function answers(place: MarkerPlace, address: IpAddress, port: number, signal: AbortSignal): Promise<boolean> {
  const { caller, senders, endpoint } = place;
  const probe = { protocol: 'tcp', address, port, timeout: attemptTimeout } as const;
  const argument = { probe, until: { by: endpoint.name, interval: pause, timeout: patience } };
  const { result } = await callPod(caller, senders.pod, { name: 'await', argument }, signal);
  return result.status === 'answered' && result.by === endpoint.name;
}

function sliceOf({ caller, run, endpoint }: MarkerPlace, service: string, family: IpFamily): EndpointSlice {
  const address = endpoint.addresses[family];
  const labels = { [runLabel]: run, 'kubernetes.io/service-name': service };
  return {
    metadata: { name: `${service}-${family.toLowerCase()}`, namespace: caller.namespace, labels },
    addressType: family,
    ports: [{ name: 'marker', protocol: 'TCP', port: markerPort }],
    endpoints:
      address === undefined ? [] : [{ addresses: [address], conditions: { ready: true }, nodeName: endpoint.node }],
  };
}
