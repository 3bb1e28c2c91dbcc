export * from './command-runner.ts';
export * from './command-error.ts';
export * from './json-logger.ts';
export * from './node-addresses.ts';
export * from './ip-families.ts';
export * from './release-memory.ts';
export * from './run-app.ts';
export * from './kernel-files.ts';
