export * from './kube-proxy-save.ts';
