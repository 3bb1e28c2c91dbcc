export * from './command-runner.ts';
export * from './command-error.ts';
export {
  createJsonLogger,
  createLogger,
  type LeveledLogger,
  type LogFormat,
  type LogLevel,
  logLevelOf,
} from './logger.ts';
export * from './node-addresses.ts';
export * from './run-app.ts';
export * from './prometheus-text.ts';
export * from './prometheus-metrics.ts';
export * from './process-metrics.ts';
export * from './kernel-files.ts';
export * from './markdown.ts';
