import type { Millis } from '@switchyard/core';
import type { HaproxyConfiguration } from '../haproxy/render-haproxy.ts';

/** How an attempt to run a configuration ended. */
export type ApplyResult =
  | { readonly status: 'applied' }
  | { readonly status: 'unchanged' }
  /** HAProxy said no; what ran before runs on. `reason` is what it said, on one line. */
  | { readonly status: 'rejected'; readonly reason: string };

/** HAProxy began or stopped using a node. */
export interface ServerStateChange {
  /** Wall clock at which the line arrived: HAProxy's own stamps have whole seconds. */
  readonly time: Millis;
  readonly isUp: boolean;
  readonly backend: string;
  readonly server: string;
  /** HAProxy's words, for example `Layer7 wrong status, code: 503`. */
  readonly reason: string;
}

/** Where HAProxy runs: a process in a namespace; later also a container. */
export interface LoadBalancerRuntime extends AsyncDisposable {
  /**
   * Makes HAProxy run this configuration without dropping a connection. A bad one never replaces a good one. Starts
   * HAProxy if it does not run. Rejects only when that cannot be tried at all. Calls must not overlap.
   */
  apply(configuration: HaproxyConfiguration, signal: AbortSignal): Promise<ApplyResult>;
}
