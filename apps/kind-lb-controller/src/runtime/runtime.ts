import type { IpAddress } from '@switchyard/core';
import type { LoadBalancerId, LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import type { AddressSource } from '../plan/ip-pool.ts';

/** A load balancer that exists, perhaps since an earlier controller. */
export interface ExistingLoadBalancer {
  readonly id: LoadBalancerId;
  /** Those it was last given; empty if it got none yet. */
  readonly addresses: readonly IpAddress[];
}

/** Result of an attempt to run a load balancer. After a failure, the previous one runs on. */
export type EnsureOutcome =
  | {
      readonly status: 'applied' | 'unchanged';
      /** Where it runs, for people: `container switchyard-lb-1f3a9`, `HAProxy 4711 in namespace lb`. */
      readonly where: string;
      /** Service ports that can be reached on the machine itself, such as `127.0.0.1:32768 -> 80/TCP`. Empty unless publishing is on. */
      readonly published: readonly string[];
    }
  /** It cannot be run so. `reason` is CamelCase and stable, `message` one line: what was tried, what came back, what to do. */
  | { readonly status: 'failed'; readonly reason: string; readonly message: string };

/** A node that a load balancer began or stopped using, for one port and IP family. */
export interface TargetChange {
  readonly id: LoadBalancerId;
  readonly port: number;
  readonly ipFamily: 'IPv4' | 'IPv6';
  readonly target: string;
  readonly isUp: boolean;
  /** Wall clock, milliseconds since the Unix epoch. */
  readonly time: number;
  /** HAProxy's words, for example `Layer7 wrong status, code: 503`. */
  readonly reason: string;
}

/** Receiver of a runtime's reports. Must not throw. */
export interface RuntimeListener {
  /** These were disturbed (crashed, restarted, removed by hand): `ensure` or `remove` them again. `all`: every load balancer. */
  onDisturbed(which: readonly LoadBalancerId[] | 'all'): void;
  onTargetChange(change: TargetChange): void;
}

/**
 * Where load balancers run: containers of their own, or one HAProxy process in a namespace for all. Calls for different load balancers may
 * overlap, for one they must not. Methods reject only with `signal.reason`, or with a SwitchyardError that says what to do.
 */
export interface LoadBalancerRuntime extends AsyncDisposable {
  /** The current address source, with addresses in use by others. Rejects while it is unknown (no such network). */
  addressSource(signal: AbortSignal): Promise<AddressSource>;
  /** All load balancers of a cluster that exist, also half-made ones. The next `ensure` of each looks anew at what others may have changed. */
  list(cluster: string, signal: AbortSignal): Promise<readonly ExistingLoadBalancer[]>;
  /**
   * Makes it run as described. Where it runs already no connection is dropped, unless it has outlived 50 reloads of HAProxy
   * (`mworker-max-reloads`). Cheap when nothing changed.
   */
  ensure(spec: LoadBalancerSpec, signal: AbortSignal): Promise<EnsureOutcome>;
  /** Removes it with all that belongs to it, also one that is half made. One that is not there is success. */
  remove(id: LoadBalancerId, signal: AbortSignal): Promise<void>;
}
