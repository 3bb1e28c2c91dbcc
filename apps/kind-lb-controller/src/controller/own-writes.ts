import type { ServiceKey } from '@switchyard/core';
import type { LoadBalancerService } from '../cluster/cluster-objects.ts';

/**
 * Services as we wrote them last, until the watch shows them: what is based on the version before would only be refused, and
 * read again.
 */
export class OwnWrites {
  readonly #latest = new Map<ServiceKey, { readonly service: LoadBalancerService; readonly superseded: Set<string> }>();

  /** The newer one of what the watch shows and what we wrote. */
  newest(seen: LoadBalancerService): LoadBalancerService {
    const { key } = seen.record;
    const own = this.#latest.get(key);
    if (own?.superseded.has(seen.resourceVersion) === true) return own.service;
    this.#latest.delete(key);
    return seen;
  }

  /** `after` is what became of `before`. */
  remember(before: LoadBalancerService, after: LoadBalancerService): void {
    if (before.resourceVersion === after.resourceVersion) return;
    const { key } = after.record;
    const superseded = this.#latest.get(key)?.superseded ?? new Set();
    this.#latest.set(key, { service: after, superseded: superseded.add(before.resourceVersion) });
  }

  /** The Service is gone. */
  forget(key: ServiceKey): void {
    this.#latest.delete(key);
  }
}
