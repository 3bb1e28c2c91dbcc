import { type IpAddress, type IpFamily, millis, parseIp, systemClock } from '@switchyard/core';
import { freshPort } from '@switchyard/lab';
import type { ClusterObject } from '@switchyard/scenarios';
import type { ClusterFeed } from './cluster-feed.ts';
import type { LabHosts } from './lab-hosts.ts';

const addresses: Readonly<Record<IpFamily, IpAddress>> = {
  IPv4: parseIp('10.96.254.254'),
  IPv6: parseIp('fd00:10:96::fefe'),
};
/** Port of the echo server behind the marker; no case uses it. */
export const markerPort = 9100;
const [firstPort, lastPort] = [10_000, 60_000];

/** Inputs of the marker. */
export interface MarkerPlace {
  readonly hosts: LabHosts;
  readonly feed: ClusterFeed;
  readonly families: readonly IpFamily[];
  /** Pod addresses of the echo server behind the marker. */
  readonly endpoint: Readonly<Partial<Record<IpFamily, IpAddress>>>;
}

/**
 * A Service of the runner whose answers show that the proxy has applied everything written before. Each time it gets another port and
 * port name, in the Service and in its slices. It only answers there once the proxy has seen both, and so, as each watch is in order,
 * everything written to Services and slices before.
 */
export class Marker {
  readonly #place: MarkerPlace;
  #count = 0;

  constructor(place: MarkerPlace) {
    this.#place = place;
  }

  /** Writes the next one. */
  write(): void {
    this.#count += 1;
    for (const object of this.#objects()) this.#place.feed.putOwn(object);
  }

  /** Resolves when the last marker answers in every family. Rejects with `signal.reason`, or if the prober has ended; has no timeout. */
  async answered(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#place.families.map((family) => this.#answers(family, signal)));
  }

  get #port(): number {
    return firstPort + (this.#count % (lastPort - firstPort));
  }

  /**
   * Attempts overlap, each from its own port: a dropped attempt takes a second and a half, and must not delay the next one.
   */
  async #answers(family: IpFamily, signal: AbortSignal): Promise<void> {
    const { hosts } = this.#place;
    const prober = await hosts.proberIn(hosts.clientPod, signal);
    const port = this.#port;
    const answer = new AbortController();
    const either = AbortSignal.any([signal, answer.signal]);
    let broken: unknown;
    const attempt = async (): Promise<void> => {
      const sourcePort = freshPort(hosts.clientPod);
      const result = await prober.probe({ protocol: 'tcp', address: addresses[family], port, sourcePort });
      if (result.status === 'answered') answer.abort();
    };
    for (let pause = 6; !answer.signal.aborted; pause = Math.min(pause * 1.3, 50)) {
      signal.throwIfAborted();
      attempt().catch((error: unknown) => {
        broken = error; // the prober has ended, which says nothing about the proxy
        answer.abort();
      });
      await systemClock.sleep(millis(pause), either).catch(() => undefined);
    }
    signal.throwIfAborted();
    if (broken !== undefined) throw broken;
  }

  #objects(): readonly ClusterObject[] {
    const { families, endpoint } = this.#place;
    const name = 'marker';
    const port = `p-${this.#count}`;
    const namespace = 'switchyard-conformance';
    const clusterIPs = families.map((family) => addresses[family]);
    const service: ClusterObject = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace, name },
      spec: {
        type: 'ClusterIP',
        clusterIP: clusterIPs[0] ?? '',
        clusterIPs,
        ipFamilies: families,
        ports: [{ name: port, port: this.#port, protocol: 'TCP', targetPort: markerPort }],
      },
    };
    const slices = families.map((family): ClusterObject => ({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace, name: `${name}-${family.toLowerCase()}`, labels: { 'kubernetes.io/service-name': name } },
      addressType: family,
      ports: [{ name: port, protocol: 'TCP', port: markerPort }],
      endpoints: [{ addresses: [endpoint[family] ?? ''], conditions: { ready: true }, nodeName: 'node2' }],
    }));
    return [service, ...slices];
  }
}
