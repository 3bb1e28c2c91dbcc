export * from './command-runner.ts';
