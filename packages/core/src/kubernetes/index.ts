export * from './api-server-connection.ts';
export * from './kubernetes-source.ts';
export type { MergeOptions } from './merge-batches.ts';
export * from './reflector-timings.ts';
export type { NodeScope } from './resources.ts';
export * from './to-records.ts';
export * from './in-cluster.ts';
export * from './load-kubeconfig.ts';
