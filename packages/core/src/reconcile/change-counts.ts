import type { IpFamily } from '../ip/address.ts';
import type { Metrics } from '../metrics.ts';
import type { ClusterEvent } from '../state/cluster-event.ts';

/** How many changes had been heard of at some moment. Only grows. */
export interface SeenChanges {
  readonly services: number;
  readonly endpointSlices: number;
}

/**
 * Counts the changes of Services and EndpointSlices, and how many of them wait for a family to apply them. Each object of a
 * full list counts as one, as in kube-proxy.
 */
export class ChangeCounts {
  readonly #metrics: Metrics;
  readonly #applied: Map<IpFamily, SeenChanges>;
  #seen: SeenChanges = { services: 0, endpointSlices: 0 };

  constructor(metrics: Metrics, ipFamilies: readonly IpFamily[]) {
    this.#metrics = metrics;
    this.#applied = new Map(ipFamilies.map((ipFamily) => [ipFamily, this.#seen]));
  }

  /** What an apply that begins now will contain. */
  get seen(): SeenChanges {
    return this.#seen;
  }

  /** Events were heard. `isDirty`: something must be rebuilt for them; what changes nothing does not wait. */
  note(batch: readonly ClusterEvent[], isDirty: boolean): void {
    const services = objectsOf(batch, 'Service');
    const endpointSlices = objectsOf(batch, 'EndpointSlice');
    if (services > 0) this.#metrics.add('kubeproxy_sync_proxy_rules_service_changes_total', {}, services);
    if (endpointSlices > 0) this.#metrics.add('kubeproxy_sync_proxy_rules_endpoint_changes_total', {}, endpointSlices);
    if (!isDirty || services + endpointSlices === 0) return;
    this.#seen = {
      services: this.#seen.services + services,
      endpointSlices: this.#seen.endpointSlices + endpointSlices,
    };
    this.#setPending();
  }

  /** A family has applied what had been seen then. */
  noteApplied(ipFamily: IpFamily, seen: SeenChanges): void {
    if (this.#applied.get(ipFamily) === seen) return;
    this.#applied.set(ipFamily, seen);
    this.#setPending();
  }

  #setPending(): void {
    const applied = [...this.#applied.values()];
    const pending = (key: keyof SeenChanges): number => this.#seen[key] - Math.min(...applied.map((one) => one[key]));
    this.#metrics.set('kubeproxy_sync_proxy_rules_service_changes_pending', {}, pending('services'));
    this.#metrics.set('kubeproxy_sync_proxy_rules_endpoint_changes_pending', {}, pending('endpointSlices'));
  }
}

function objectsOf(batch: readonly ClusterEvent[], resource: ClusterEvent['resource']): number {
  let count = 0;
  for (const event of batch) {
    if (event.resource === resource) count += event.kind === 'replace' ? event.items.length : 1;
  }
  return count;
}
