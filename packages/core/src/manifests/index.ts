export * from './manifest-source.ts';
export * from './read-manifest.ts';
