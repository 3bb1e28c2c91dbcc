export type * from './lab.ts';
export type * from './api-types.ts';
export * from './api-client.ts';
export * from './apiserver/server.ts';
export type { Fault, FaultMatch, FaultOptions, Faults } from './apiserver/http/faults.ts';
export * from './apiserver/listen-in-namespace.ts';
