import { type Clock, type IpAddress, isEqual, type Millis, type ServiceKey } from '@switchyard/core';
import type { LoadBalancerService } from '../cluster/cluster-objects.ts';
import { AddressBook } from '../plan/address-book.ts';
import { type AddressGrant, type AddressSource, type HeldAddresses } from '../plan/ip-pool.ts';
import { type LoadBalancerId, type LoadBalancerKey, loadBalancerKey } from '../spec/load-balancer-spec.ts';

/** Source of addresses, and the clock for its age. */
export interface AddressAllocatorOptions {
  /** A runtime's. */
  readonly readSource: (signal: AbortSignal) => Promise<AddressSource>;
  readonly clock: Clock;
}

/** Called with the Services of one cluster whose grants changed because of another cluster or the network. Must not throw. */
export type OnGrants = (services: readonly ServiceKey[]) => void;

/**
 * The address book of all clusters, with the source it draws from and grants that are worked out once per change. Nothing
 * is granted before the source is known, or to a cluster before its running load balancers are known. Addresses of clusters that
 * this controller does not serve come from the source: another controller may serve them.
 */
export class AddressAllocator {
  readonly #options: AddressAllocatorOptions;
  readonly #book = new AddressBook();
  readonly #listeners = new Map<string, OnGrants>();
  /** Clusters whose load balancers are known, because only this controller makes or removes them. */
  readonly #adopted = new Set<string>();
  #source: AddressSource | undefined;
  #readAt = -Infinity;
  /** One reading serves all concurrent callers. If its caller aborts, the others start another one. */
  #reading: { readonly source: Promise<AddressSource>; readonly isAborted: () => boolean } | undefined;
  #grants: ReadonlyMap<LoadBalancerKey, AddressGrant> = new Map();
  #isStale = false;

  constructor(options: AddressAllocatorOptions) {
    this.#options = options;
  }

  /** Calls `onGrants` for changes until `leave`. */
  join(cluster: string, onGrants: OnGrants): void {
    this.#listeners.set(cluster, onGrants);
  }

  /** Ends the requests of a cluster; its Services keep their addresses. */
  leave(cluster: string): void {
    this.#listeners.delete(cluster);
    this.#adopted.delete(cluster);
    this.#book.observe(cluster, []);
    this.#isStale = true;
  }

  /** Frees the addresses of a deleted cluster. */
  forget(cluster: string): void {
    this.leave(cluster);
    this.#book.replace((one) => one === cluster, []);
    this.#assign();
  }

  /** Ensures that the source is known and not older than `maxAge`. Rejects as the runtime does. */
  async refresh(maxAge: Millis, signal: AbortSignal): Promise<void> {
    const { clock, readSource } = this.#options;
    if (this.#source !== undefined && clock.monotonic() - this.#readAt <= maxAge) return;
    for (;;) {
      const reading = (this.#reading ??= {
        source: readSource(signal).finally(() => (this.#reading = undefined)),
        isAborted: () => signal.aborted,
      });
      try {
        return this.#take(await reading.source);
      } catch (error) {
        signal.throwIfAborted();
        if (!reading.isAborted()) throw error;
      }
    }
  }

  /** Records the running load balancers of a served cluster, earlier controllers' included. Grants addresses from now until `leave`. */
  adopt(cluster: string, existing: Iterable<HeldAddresses>): void {
    if (this.#adopted.has(cluster)) this.#book.adopt(existing);
    else this.#book.replace((one) => one === cluster, existing);
    this.#adopted.add(cluster);
    this.#isStale = true;
  }

  /** Records all current Services of a cluster. */
  observe(cluster: string, services: Iterable<LoadBalancerService>): void {
    this.#book.observe(cluster, services);
    this.#isStale = true;
    this.#assign();
  }

  /** Frees the addresses of a removed load balancer. */
  release(id: LoadBalancerId): void {
    this.#book.release(id);
    this.#isStale = true;
    this.#assign();
  }

  /** Whether anything can be granted. */
  get isOpen(): boolean {
    return this.#source !== undefined;
  }

  /** The grant of a load balancer; undefined for a Service of another controller, a cluster not adopted, or an unknown source. */
  grantOf(id: LoadBalancerId): AddressGrant | undefined {
    if (!this.#adopted.has(id.cluster)) return undefined;
    this.#assign();
    return this.#grants.get(loadBalancerKey(id));
  }

  /** Addresses a load balancer has been given, whether or not it still wants them. */
  addressesOf(id: LoadBalancerId): readonly IpAddress[] {
    return this.#book.addressesOf(id);
  }

  #take(source: AddressSource): void {
    this.#readAt = this.#options.clock.monotonic();
    if (isEqual(this.#source, source)) return;
    this.#source = source;
    const { held } = source.kind === 'pool' ? source : { held: undefined };
    if (held !== undefined) this.#book.replace((cluster) => !this.#adopted.has(cluster), held);
    this.#isStale = true;
    this.#assign();
  }

  #assign(): void {
    if (!this.#isStale || this.#source === undefined) return;
    this.#isStale = false;
    const before = this.#grants;
    this.#grants = this.#book.assign(this.#source);
    const changed = new Map<string, ServiceKey[]>();
    for (const [key, grant] of this.#grants) {
      const { cluster, service } = grant.id;
      if (before.has(key) && isEqual(before.get(key), grant)) continue;
      changed.set(cluster, [...(changed.get(cluster) ?? []), service]);
    }
    for (const [cluster, services] of changed) this.#listeners.get(cluster)?.(services);
  }
}
