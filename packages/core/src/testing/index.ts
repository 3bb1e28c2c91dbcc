export * from './builders.ts';
export * from './cluster.ts';
export * from './manual-clock.ts';
export * from './memory-source.ts';
export * from './memory-http-listener.ts';
export * from './scripted-api-server.ts';
export * from './recording-clock.ts';
export * from './memory-logger.ts';
