export type * from './lab.ts';
export type * from './api-types.ts';
export * from './api-client.ts';
