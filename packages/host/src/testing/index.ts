export * from './scripted-runner.ts';
