export { cleanUpCluster, openClusterBed } from './open-cluster-bed.ts';
export { ClusterBed } from './cluster-bed.ts';
export type { ClusterBedOptions } from './cluster-options.ts';
