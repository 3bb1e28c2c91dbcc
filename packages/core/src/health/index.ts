export type { Announcement, HealthClient } from './health-clients.ts';
export * from './http-answer.ts';
export {
  createHttpListener,
  type HttpLimits,
  type HttpListener,
  type HttpSocket,
  type ListenTarget,
  usualHttpLimits,
} from './http-listener.ts';
export * from './proxy-health.ts';
export * from './service-health.ts';
