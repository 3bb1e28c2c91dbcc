import type { ServiceKey } from '@switchyard/core';
import type { ServiceSettings } from '../plan/settings.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import type { RunningPlace } from './planned-status.ts';

/** A load balancer that exists, or may exist because its making was begun. One run of its Service at a time changes it. */
export interface KnownLoadBalancer {
  /** What the runtime took last, and where that runs; undefined: nothing, from us. */
  applied: { readonly spec: LoadBalancerSpec; readonly place: RunningPlace } | undefined;
  /** It may be different from what was applied: the runtime must be asked. */
  isDisturbed: boolean;
  /** Of the last plan that ran. */
  settings: ServiceSettings | undefined;
  /** The Service, by its uid, that was told of its making, and of its removal. */
  ensuringToldTo: string | undefined;
  deletingToldTo: string | undefined;
}

/** What is known of the load balancers of one cluster; all of it could be found out again. */
export class KnownLoadBalancers {
  readonly #known = new Map<ServiceKey, KnownLoadBalancer>();

  /** Services with a load balancer that exists or may exist. */
  get keys(): readonly ServiceKey[] {
    return [...this.#known.keys()];
  }

  has(key: ServiceKey): boolean {
    return this.#known.has(key);
  }

  find(key: ServiceKey): KnownLoadBalancer | undefined {
    return this.#known.get(key);
  }

  /** From now on it may exist. */
  begin(key: ServiceKey): KnownLoadBalancer {
    let found = this.#known.get(key);
    if (found === undefined) {
      const nobody = { ensuringToldTo: undefined, deletingToldTo: undefined };
      found = { applied: undefined, isDisturbed: false, settings: undefined, ...nobody };
      this.#known.set(key, found);
    }
    return found;
  }

  /** It is removed. */
  forget(key: ServiceKey): void {
    this.#known.delete(key);
  }
}
