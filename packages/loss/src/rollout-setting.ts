import { type Millis, millis, seconds } from '@switchyard/core';
import type { CheckTiming, Span } from './check-timing.ts';

/** Delays of the nodes' proxies behind EndpointSlices, and their handling of terminating endpoints. */
export interface ProxyTiming {
  /** KEP-1669: a node without a ready endpoint still forwards to those that serve while they terminate. */
  readonly terminatingFallback: boolean;
  /** Time from an endpoint's readiness until its node's health check passes and the load balancer's check has its answer. */
  readonly noticesReady: Span;
  /** Time from an endpoint's deletion until its node's health check fails (and its traffic stops, without the fallback). */
  readonly noticesTerminating: Span;
}

/**
 * A proxy whose timing is known. `switchyard` is its nftables mode; `kube-proxy` any mode of 1.26 and later; `cilium` its kube-proxy replacement
 * of 1.18 and later.
 */
export type KnownProxy = 'switchyard' | 'switchyard-iptables' | 'kube-proxy' | 'kube-proxy-1.25' | CiliumProxy;

/** Cilium's kube-proxy replacement, whose delays are assumed and not measured. */
export type CiliumProxy = 'cilium' | 'cilium-1.17';

/** Phases of a pod's life. */
export interface AppTiming {
  /** Time from the pod's creation until it is Ready. */
  readonly startup: Millis;
  /** Time that the preStop hook delays SIGTERM. */
  readonly preStop: Millis;
  /** Time that the app continues to accept connections after SIGTERM. */
  readonly drain: Millis;
  readonly gracePeriod: Millis;
}

/** Strategy by which a Deployment replaces its pods. Counts, not percentages. */
export type RolloutStrategy =
  | { readonly kind: 'RollingUpdate'; readonly maxSurge: number; readonly maxUnavailable: number }
  | { readonly kind: 'Recreate' };

/** A Deployment and where its pods may run. */
export interface RolloutShape {
  readonly replicas: number;
  /** Nodes that can run the pods and that the load balancer may use. */
  readonly nodes: number;
  /** At most one pod per node (required anti-affinity, old and new pods alike), or wherever the fewest are. */
  readonly spread: 'perNode' | 'anywhere';
  readonly strategy: RolloutStrategy;
  readonly minReady: Millis;
}

/** Everything that decides what a rollout loses. */
export interface RolloutSetting {
  /** `Cluster`: health checks do not follow pods, every node forwards to all of them. */
  readonly policy: 'Cluster' | 'Local';
  readonly check: CheckTiming;
  readonly proxy: ProxyTiming;
  readonly app: AppTiming;
  readonly shape: RolloutShape;
  /** Delay after which the load balancer drains a node that lost its last ready endpoint, by EndpointSlices; undefined: it only checks health. */
  readonly fastDrain?: Span;
}

/** `minSyncPeriod` of kube-proxy, and of our iptables mode. */
const minSync = seconds(1);

/** How soon a load balancer with fast drain leaves a node, as measured: an EndpointSlice event, a plan, a write to HAProxy. */
export const fastDrainTiming: Span = span(0.01, 0.5);

/** Interval at which a load balancer with fast drain checks a node that is DOWN, unless its profile has a shorter one. */
export const fastDrainDownInterval: Millis = millis(250);

/** Least time for which a load balancer with fast drain uses nodes that were UP while no node is. */
const fastDrainLastUp: Millis = seconds(10);

/**
 * Checks as a load balancer with fast drain makes them. A node that drains can be left only when the node with the new pod is UP, so nodes
 * that are DOWN are checked often, and one good check is enough: EndpointSlices say the same. A failing check may come before these
 * say that the node drains; until then the node was UP a moment ago.
 */
export function withFastDrain<T extends Pick<CheckTiming, 'downInterval' | 'rise' | 'whenNoneUp' | 'lastUpFor'>>(
  check: T,
): T {
  return {
    ...check,
    downInterval: millis(Math.min(check.downInterval, fastDrainDownInterval)),
    rise: 1,
    whenNoneUp: 'lastUp',
    lastUpFor: millis(Math.max(check.lastUpFor, fastDrainLastUp)),
  };
}

/**
 * How soon a proxy follows, as measured with kube-proxy 1.36 and 1.25. kube-proxy holds a node's second change back for 1 s: the deletion of the old pod comes
 * right after the new one has become ready, unless that was `minReady` ago.
 */
export function knownProxyTiming(proxy: KnownProxy, minReady: Millis = millis(0)): ProxyTiming {
  const noticesReady = span(0.01, 0.12);
  switch (proxy) {
    case 'switchyard':
      return { terminatingFallback: true, noticesReady, noticesTerminating: span(0.01, 0.12) };
    case 'switchyard-iptables':
    case 'kube-proxy':
      return {
        terminatingFallback: true,
        noticesReady,
        noticesTerminating: minReady > minSync ? span(0.01, 1.15) : span(1, 1.15),
      };
    case 'kube-proxy-1.25':
      return { terminatingFallback: false, noticesReady, noticesTerminating: span(0.1, 0.25) };
    case 'cilium':
    case 'cilium-1.17':
      // New connections to a Service whose pods all terminate: refused before 1.18, which has the fallback for both algorithms.
      return {
        terminatingFallback: proxy === 'cilium',
        noticesReady: span(0.01, 1),
        noticesTerminating: span(0.01, 1),
      };
  }
}

/**
 * How soon a proxy follows in a cluster where other Services change too. Their changes move the second in which kube-proxy holds changes back, so a deletion may
 * be applied at once. kube-proxy 1.25 holds back as well once two changes came within a second. `longest` replaces both upper bounds: for clusters so large that
 * writing the rules takes longer.
 */
export function clusterProxyTiming(proxy: KnownProxy, longest?: Millis): ProxyTiming {
  const { terminatingFallback, noticesReady, noticesTerminating } = knownProxyTiming(proxy);
  const latest = proxy === 'kube-proxy-1.25' ? seconds(1.25) : noticesTerminating.longest;
  const upTo = (usual: Millis): Span => ({ shortest: noticesReady.shortest, longest: longest ?? usual });
  return { terminatingFallback, noticesReady: upTo(noticesReady.longest), noticesTerminating: upTo(latest) };
}

/**
 * Time that a pod continues to accept connections after its deletion. The kubelet runs the preStop hook, then sends SIGTERM, and
 * kills at the end of the grace period; a hook that lasts as long leaves the app 2 s.
 */
export function servingTime({ preStop, drain, gracePeriod }: AppTiming): Millis {
  const lastMoment = preStop >= gracePeriod ? gracePeriod + seconds(2) : gracePeriod;
  return millis(Math.min(Math.min(preStop, gracePeriod) + drain, lastMoment));
}

function span(shortest: number, longest: number): Span {
  return { shortest: seconds(shortest), longest: seconds(longest) };
}
