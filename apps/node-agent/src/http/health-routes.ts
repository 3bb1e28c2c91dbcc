import { type Clock, type Metrics } from '@switchyard/core';
import { healthzAnswer, livezAnswer, type ProxyHealth } from '@switchyard/core/health';
import type { Route } from './route.ts';

/** Options of the endpoints of the health server. */
export interface HealthRoutesOptions {
  readonly health: () => ProxyHealth;
  readonly clock: Clock;
  readonly metrics: Metrics;
}

/** `/healthz` for load balancers and `/livez` for liveness probes; each answer is counted by its code. */
export function healthRoutes({ health, clock, metrics }: HealthRoutesOptions): readonly Route[] {
  const route = (name: 'healthz' | 'livez', answerOf: typeof healthzAnswer): Route => ({
    path: `/${name}`,
    methods: 'any',
    answer: () => {
      const answer = answerOf(health(), clock.now());
      metrics.add(`kubeproxy_proxy_${name}_total`, { code: String(answer.status) });
      return answer;
    },
  });
  return [route('healthz', healthzAnswer), route('livez', livezAnswer)];
}
