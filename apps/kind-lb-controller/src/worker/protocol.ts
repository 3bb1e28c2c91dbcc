import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';

/**
 * Request of the controller, as JSON on standard input, to the program `switchyard-lb-worker` inside a load balancer's
 * container: a process that does it, answers and ends. The container's first process is HAProxy.
 */
export type WorkerRequest =
  /** Makes addresses, routes, HAProxy's configuration and kernel rules match the spec. */
  | {
      readonly command: 'apply';
      readonly spec: LoadBalancerSpec;
      /** Whether the Service's ports are also served on the container's own addresses, where the engine's port publishing arrives. */
      readonly isPublished: boolean;
    }
  /** Health has changed: only kernel rules, from the spec that was applied last and HAProxy's server states. */
  | { readonly command: 'followHealth' };

/** Its answer, one JSON line on standard output; progress and failures are on standard error. */
export type WorkerAnswer =
  | { readonly status: 'applied' | 'unchanged' }
  | { readonly status: 'failed'; readonly reason: string; readonly message: string };
