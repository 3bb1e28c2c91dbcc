export * from './example-objects.ts';
