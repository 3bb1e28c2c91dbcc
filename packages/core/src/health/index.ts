export * from './http-answer.ts';
export * from './http-handler.ts';
export * from './http-listener.ts';
export * from './proxy-health.ts';
export * from './service-health.ts';
