import type { Clock, Metrics, Millis } from '@switchyard/core';
import {
  healthzAnswer,
  livezAnswer,
  type ProxyHealth,
  type HttpAnswer,
  type HttpRequest,
  textAnswer,
} from '@switchyard/core/health';
import { type Route, get } from './route.ts';

interface HealthRoutesOptions {
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

const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * `/healthz` of the metrics server, which says only that the process answers, and `/metrics/slis`, which counts those
 * answers (`kubernetes_healthcheck`, `kubernetes_healthchecks_total`), beside the start of the process (wall clock). DELETE
 * of the latter starts counting anew.
 */
export function healthAndSliRoutes(startTime: Millis): readonly Route[] {
  const sliHeaders = { 'Content-Type': metricsContentType, ...processStartHeader(startTime) };
  let answered = 0;
  const ping = (): HttpAnswer => {
    answered++;
    return textAnswer(200, 'ok');
  };
  return [
    get('/healthz', (request) => verboseAnswer(ping(), request)),
    get('/healthz/ping', ping),
    {
      path: '/metrics/slis',
      methods: ['GET', 'DELETE'],
      answer: ({ method }) => {
        if (method !== 'DELETE') return textAnswer(200, sliText(answered, startTime), sliHeaders);
        answered = 0;
        return textAnswer(200, 'metrics reset\n');
      },
    },
  ];
}

/** The header by which Prometheus' libraries report the start of the process (wall clock), in whole seconds. */
export function processStartHeader(startTime: Millis): Readonly<Record<string, string>> {
  return { 'Process-Start-Time-Unix': String(Math.floor(startTime / 1000)) };
}

function verboseAnswer(answer: HttpAnswer, { query }: HttpRequest): HttpAnswer {
  if (!query.has('verbose')) return answer;
  const check = query.getAll('exclude').includes('ping') ? '[+]ping excluded: ok' : '[+]ping ok';
  return { ...answer, body: `${check}\nhealthz check passed\n` };
}

function sliText(answered: number, startTime: Millis): string {
  const checks = [
    '# HELP kubernetes_healthcheck [STABLE] Result of a health check: 1 for success, 0 for failure',
    '# TYPE kubernetes_healthcheck gauge',
    'kubernetes_healthcheck{name="ping",type="healthz"} 1',
    '# HELP kubernetes_healthchecks_total [STABLE] Results of a health check, by status',
    '# TYPE kubernetes_healthchecks_total counter',
    `kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} ${answered}`,
  ];
  return [
    ...(answered === 0 ? [] : checks),
    '# HELP process_start_time_seconds [ALPHA] Start time of the process since the Unix epoch',
    '# TYPE process_start_time_seconds gauge',
    `process_start_time_seconds ${startTime / 1000}`,
    '',
  ].join('\n');
}
