export * from './scripted-runner.ts';
export * from './kube-proxy-save.ts';
