export * from './manual-clock.ts';
export * from './memory-http-listener.ts';
