import { type Clock, HostError, type IpAddress, type IpFamily, parseIp } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import type { ApiObject, ApiResource, EndpointSlice, Service } from '@switchyard/core/kubernetes';
import type { ClusterPlace } from './cluster-connector.ts';
import { runLabel } from './preflight.ts';
import { realPort } from './echo-pool.ts';
import type { TrafficPod } from './start-pods.ts';
import { callPod } from './traffic-caller.ts';

interface MarkerPlace extends Pick<ClusterPlace, 'caller' | 'run' | 'senders'> {
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
 * Services by which packets show that the proxy has all that was written before. Each is new, in name, cluster IP and port: it answers
 * only for a proxy that has seen the Service and the slices, and so, as each watch is in order, everything before.
 */
export class Markers {
  readonly #place: MarkerPlace;
  #count = 0;

  constructor(place: MarkerPlace) {
    this.#place = place;
  }

  /** Writes a marker, waits until it answers in every family, and removes it. Rejects with `HostError` if it never answers. */
  async pass(signal: AbortSignal): Promise<void> {
    const { caller, clock, families, onProgress } = this.#place;
    this.#count += 1;
    const start = clock.monotonic();
    const service = await this.#write(signal);
    const addresses = (service.spec?.clusterIPs ?? []).map((ip) => parseIp(ip));
    const port = service.spec?.ports?.[0]?.port ?? 0;
    if (addresses.length < families.length) {
      const got = addresses.join(', ') || 'no cluster IP';
      throw new HostError('cluster.marker', `the API server gave a Service of ${families.join(' and ')} ${got}`);
    }
    let isTold = false;
    for (let waiting: readonly IpAddress[] = addresses; ;) {
      const answered = await Promise.all(waiting.map((address) => this.#answers(address, port, signal)));
      waiting = waiting.filter((_, index) => answered[index] !== true);
      if (waiting.length === 0) break;
      const waited = clock.monotonic() - start;
      if (waited > longest) {
        throw new HostError(
          'cluster.marker',
          `the proxy on the node under test does not serve a new Service (${waiting.join(', ')} port ${port}, ${families.join(' and ')}) ` +
            `within ${longest / 1000} s; does it run, and does the cluster have its addresses?`,
        );
      }
      if (waited > quietTime && !isTold) onProgress('waiting until the proxy serves a new Service');
      isTold ||= waited > quietTime;
    }
    const remove = (resource: ApiResource<ApiObject>, name: string): Promise<void> =>
      caller.api.delete(resource, { namespace: caller.namespace, name }, {}, signal);
    await remove(apiResources.services, this.#name);
    await Promise.all(families.map((family) => remove(apiResources.endpointSlices, this.#sliceName(family))));
  }

  async #answers(address: IpAddress, port: number, signal: AbortSignal): Promise<boolean> {
    const { caller, senders, endpoint } = this.#place;
    const probe = { protocol: 'tcp', address, port, timeout: attemptTimeout } as const;
    const argument = { probe, until: { by: endpoint.name, interval: pause, timeout: patience } };
    const { result } = await callPod(caller, senders.pod, { name: 'await', argument }, signal);
    return result.status === 'answered' && result.by === endpoint.name;
  }

  /** Writes the Service first: the marker only answers once the proxy has the slices as well. */
  async #write(signal: AbortSignal): Promise<Service> {
    const { caller, run, families } = this.#place;
    const metadata = { name: this.#name, namespace: caller.namespace, labels: { [runLabel]: run } };
    const service = await caller.api.create(
      apiResources.services,
      {
        metadata,
        spec: {
          type: 'ClusterIP',
          ipFamilies: [...families],
          ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
          ports: [{ name: 'marker', port: 10_000 + (this.#count % 10_000), protocol: 'TCP' }],
        },
      },
      signal,
    );
    await Promise.all(
      families.map((family) => caller.api.create(apiResources.endpointSlices, this.#slice(family), signal)),
    );
    return service;
  }

  #slice(family: IpFamily): EndpointSlice {
    const { caller, run, endpoint } = this.#place;
    const address = endpoint.addresses[family];
    return {
      metadata: {
        name: this.#sliceName(family),
        namespace: caller.namespace,
        labels: { [runLabel]: run, 'kubernetes.io/service-name': this.#name },
      },
      addressType: family,
      ports: [{ name: 'marker', protocol: 'TCP', port: markerPort }],
      endpoints:
        address === undefined ? [] : [{ addresses: [address], conditions: { ready: true }, nodeName: endpoint.node }],
    };
  }

  get #name(): string {
    return `marker-${this.#count}`;
  }

  #sliceName(family: IpFamily): string {
    return `${this.#name}-${family.toLowerCase()}`;
  }
}
