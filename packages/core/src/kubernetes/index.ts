export * from './to-records.ts';
