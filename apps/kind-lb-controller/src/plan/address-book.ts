import { type IpAddress, ipFamilies, tryParseIp } from '@switchyard/core';
import { isOurs, type LoadBalancerService } from '../cluster/cluster-objects.ts';
import { type LoadBalancerId, type LoadBalancerKey, loadBalancerKey } from '../spec/load-balancer-spec.ts';
import {
  type AddressGrant,
  type AddressRequest,
  type AddressSource,
  assignAddresses,
  type HeldAddresses,
  type Holders,
} from './ip-pool.ts';

/**
 * Holders of addresses, for all clusters of one controller: they share the network. Remembers granted addresses, so
 * that two clusters never get the same address before a status shows it.
 *
 * Before anything that `assign` gives to a cluster is used, `replace` by what the runtime lists for it; after a load balancer
 * was removed, `release` it. Until then no other load balancer gets its addresses, even if its Service was deleted long ago.
 */
export class AddressBook {
  readonly #services = new Map<string, readonly LoadBalancerService[]>();
  readonly #given = new Map<LoadBalancerKey, HeldAddresses>();

  /** Load balancers that run, perhaps since an earlier controller. What is known of one already is not replaced. */
  adopt(existing: Iterable<HeldAddresses>): void {
    for (const { id, addresses } of existing) {
      const key = loadBalancerKey(id);
      if (!this.#given.has(key)) this.#given.set(key, { id, addresses });
    }
  }

  /** Replaces all load balancers of some clusters. */
  replace(isOfThem: (cluster: string) => boolean, existing: Iterable<HeldAddresses>): void {
    for (const [key, { id }] of this.#given) if (isOfThem(id.cluster)) this.#given.delete(key);
    this.adopt([...existing].filter(({ id }) => isOfThem(id.cluster)));
  }

  /** Addresses granted to a load balancer, even if its Service no longer wants them. Empty when none, or after `release`. */
  addressesOf(id: LoadBalancerId): readonly IpAddress[] {
    return this.#given.get(loadBalancerKey(id))?.addresses ?? [];
  }

  /** All Services of a cluster as they are now; none means that the cluster is gone. What it was given stays its own until released. */
  observe(cluster: string, services: Iterable<LoadBalancerService>): void {
    this.#services.set(cluster, [...services]);
  }

  /** Nothing of it runs any more: its addresses are free. */
  release(id: LoadBalancerId): void {
    this.#given.delete(loadBalancerKey(id));
  }

  /** Grants for all served Services of all clusters. The same state gives the same grants. */
  assign(source: AddressSource): ReadonlyMap<LoadBalancerKey, AddressGrant> {
    const requests = this.#requests();
    const grants = assignAddresses(requests, source, this.#holdersBeside(requests));
    for (const { id, addresses } of grants.values()) {
      if (addresses.length > 0) this.#given.set(loadBalancerKey(id), { id, addresses });
    }
    return grants;
  }

  #requests(): readonly AddressRequest[] {
    const requests: AddressRequest[] = [];
    for (const [cluster, services] of this.#services) {
      for (const service of services) {
        if (!isOurs(service)) continue;
        const id = { cluster, service: service.record.key };
        const given = this.#given.get(loadBalancerKey(id))?.addresses ?? [];
        requests.push(requestOf(service, id, given));
      }
    }
    return requests;
  }

  /** Holders of addresses without a request: load balancers not removed yet, and Services of other controllers. */
  #holdersBeside(requests: readonly AddressRequest[]): Holders {
    const asking = new Set(requests.map(({ id }) => loadBalancerKey(id)));
    const claimed = new Set(requests.flatMap(({ held }) => held));
    const holders = new Map<IpAddress, LoadBalancerId>();
    for (const [cluster, services] of this.#services) {
      for (const service of services) {
        if (isOurs(service)) continue;
        for (const ip of announced(service)) {
          if (!claimed.has(ip)) holders.set(ip, { cluster, service: service.record.key });
        }
      }
    }
    for (const { id, addresses } of this.#given.values()) {
      if (!asking.has(loadBalancerKey(id))) for (const ip of addresses) holders.set(ip, id);
    }
    return holders;
  }
}

function requestOf(service: LoadBalancerService, id: LoadBalancerId, given: readonly IpAddress[]): AddressRequest {
  const { record, createdAt, requestedIp } = service;
  return {
    id,
    createdAt,
    ipFamilies: record.ipFamilies.length > 0 ? record.ipFamilies : ipFamilies.slice(0, 1),
    ports: record.ports,
    held: [...given, ...announced(service)],
    requestedIp: tryParseIp(requestedIp ?? ''),
  };
}

/** The addresses its status shows. */
function announced({ ingress }: LoadBalancerService): readonly IpAddress[] {
  return ingress.flatMap(({ ip = '' }) => tryParseIp(ip) ?? []);
}
