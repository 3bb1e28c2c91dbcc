import type { LoadBalancerSpec, RouteSpec } from '../spec/load-balancer-spec.ts';

/** Routes of load balancers, each destination once. */
export function routesOf(specs: Iterable<LoadBalancerSpec>): readonly RouteSpec[] {
  const byDestination = new Map([...specs].flatMap(({ routes }) => routes).map((route) => [route.destination, route]));
  return [...byDestination.values()];
}

/** While HAProxy changes over: what is wanted, and what was until now, where that is no contradiction. */
export function routesDuring(before: readonly RouteSpec[], next: readonly RouteSpec[]): readonly RouteSpec[] {
  const wanted = new Set(next.map(({ destination }) => destination));
  return [...next, ...before.filter(({ destination }) => !wanted.has(destination))];
}
