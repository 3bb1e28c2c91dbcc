import type { BuiltImage } from './docker.ts';

/** The image's size and its layers', from the bottom up, as lines of text. */
export function describeImage({ tag, id, size, layers }: BuiltImage): string {
  const lines = layers.map((layer) => `  ${megabytes(layer.size).padStart(9)}  ${layer.name}`);
  return [`${tag} (${id.slice(0, 19)}): ${megabytes(size)}, unpacked`, ...lines].join('\n');
}

/** Bytes as text in MB of 1,000,000 bytes, as Docker counts. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
