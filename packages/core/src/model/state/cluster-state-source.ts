import type { ClusterEvent } from './cluster-event.ts';

/** Source of cluster state: an API server, a folder of manifests, a test. */
export interface ClusterStateSource {
  /**
   * Batches of events that belong together, in order. Ends when `signal` aborts; throws only if the
   * source can never recover (a wrong kubeconfig), never for an outage.
   */
  batches(signal: AbortSignal): AsyncIterable<readonly ClusterEvent[]>;
}
