export { cleanUpCluster, openClusterEnvironment } from './open-cluster-environment.ts';
export { ClusterEnvironment } from './cluster-environment.ts';
export type { ClusterEnvironmentOptions } from './cluster-options.ts';
