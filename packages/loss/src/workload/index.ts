export * from './check-workload.ts';
export * from './duration-text.ts';
export * from './pre-stop.ts';
export * from './usable-node.ts';
export * from './warnings.ts';
export * from './workload.ts';
