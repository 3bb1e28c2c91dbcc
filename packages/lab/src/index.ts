export type * from './lab.ts';
