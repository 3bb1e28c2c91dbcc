import type { BuiltImage } from './docker.ts';

/** The image's size and that of each layer that has one, as lines of text, the base's first. */
export function describeImage({ tag, id, size, layers }: BuiltImage): string {
  const rows = layers.filter((layer) => layer.size > 0).toReversed();
  const lines = rows.map((layer) => `  ${megabytes(layer.size).padStart(9)}  ${layer.createdBy.slice(0, 100)}`);
  return [`${tag} (${id.slice(0, 19)}): ${megabytes(size)}, unpacked`, ...lines].join('\n');
}

/** Bytes as text in MB of 1,000,000 bytes, as Docker counts. */
function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
