export type * from './lab.ts';
export { clusterCidrs, nodeNetworks, perFamily, podCidrs, serviceCidrs } from './address-plan.ts';
export { createLab } from './create-lab.ts';
export { destroyLab } from './destroy-lab.ts';
export { listLabs, type LabListing } from './list-labs.ts';
export type * from './api-types.ts';
export * from './api-client.ts';
