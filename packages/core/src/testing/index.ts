export * from './builders.ts';
export * from './cluster.ts';
export * from './manual-clock.ts';
export * from './memory-source.ts';
export * from './memory-http-listener.ts';
