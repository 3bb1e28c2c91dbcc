export * from './parse-save.ts';
export * from './plan-removal.ts';
export * from './remove-chains.ts';
export * from './kube-proxy-chains.ts';
export { endpointChain, portNameOf, type ServiceChainNames, serviceChains } from './service-chains.ts';
export * from './place.ts';
export * from './programs.ts';
export * from './line-splitter.ts';
