import type { PodLife } from './rollout-pods.ts';
import { inOrder, type Steps, stepsAt } from './steps.ts';

/** Losses of a node's connections. `share`: lost part, 0 to 1; `by`: cause of the loss. */
export interface Failing {
  readonly share: number;
  readonly by: 'node' | 'app';
}

/** Endpoints of a node: one is `ready`, or the last ones are `terminating` and serve, or there are `none`. */
export type NodeEndpoints = 'ready' | 'terminating' | 'none';

/** Behaviour of one node over time, as the load balancer and its clients see it. */
export interface NodeTimeline {
  /** Answer of the health check: whether the node has a ready endpoint. */
  readonly isHealthy: Steps<boolean>;
  readonly failing: Steps<Failing>;
  /** Its endpoints in the API, before any proxy knows. */
  readonly endpoints: Steps<NodeEndpoints>;
}

/** Delays of the node's proxy behind the API, in milliseconds. */
export interface ProxyDelays {
  readonly ready: number;
  readonly terminating: number;
  readonly terminatingFallback: boolean;
}

const fine: Failing = { share: 0, by: 'app' };

/** Returns the behaviour of a node with these pods, as far as its proxy knows them. A node without pods drops. */
export function nodeTimeline(pods: readonly PodLife[], delays: ProxyDelays): NodeTimeline {
  const { ready, terminating, terminatingFallback } = delays;
  const isReady = (pod: PodLife, at: number): boolean =>
    pod.readyAt + ready <= at && at < Math.max(pod.deletedAt + terminating, pod.readyAt + ready);
  /** Known to terminate, and not yet known to have ended. */
  const isDraining = (pod: PodLife, at: number): boolean =>
    pod.deletedAt + terminating <= at && at < pod.endsAt + Math.min(ready, terminating);
  const failingAt = (at: number): Failing => {
    const readyPods = pods.filter((pod) => isReady(pod, at));
    const draining = readyPods.length === 0 && terminatingFallback ? pods.filter((pod) => isDraining(pod, at)) : [];
    const used = readyPods.length > 0 ? readyPods : draining;
    const gone = used.filter((pod) => pod.endsAt <= at).length;
    if (used.length > 0) return gone === 0 ? fine : { share: gone / used.length, by: 'app' };
    return { share: 1, by: pods.some((pod) => pod.deletedAt <= at && at < pod.endsAt) ? 'node' : 'app' };
  };
  const times = inOrder(
    pods.flatMap(({ readyAt, deletedAt, endsAt }) => [
      readyAt + ready,
      deletedAt + terminating,
      endsAt,
      endsAt + Math.min(ready, terminating),
    ]),
  );
  const endpointsAt = (at: number): NodeEndpoints => {
    const living = pods.filter((pod) => pod.readyAt <= at && at < pod.endsAt);
    if (living.length === 0) return 'none';
    return living.some((pod) => at < pod.deletedAt) ? 'ready' : 'terminating';
  };
  const moments = inOrder(pods.flatMap(({ readyAt, deletedAt, endsAt }) => [readyAt, deletedAt, endsAt]));
  return {
    isHealthy: stepsAt(isHealthyAtStart(pods), times, (at) => pods.some((pod) => isReady(pod, at))),
    failing: stepsAt(isHealthyAtStart(pods) ? fine : ({ share: 1, by: 'app' } as const), times, failingAt),
    endpoints: stepsAt(isHealthyAtStart(pods) ? 'ready' : 'none', moments, endpointsAt),
  };
}

function isHealthyAtStart(pods: readonly PodLife[]): boolean {
  return pods.some(({ readyAt }) => readyAt === -Infinity);
}
