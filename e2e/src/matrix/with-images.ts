import { ConfigError } from '@switchyard/core';
import type { KubernetesRelease } from './matrix.ts';

/** Images that a command line names in the place of the matrix's. */
export interface NamedImages {
  readonly nodeImage: string | undefined;
  readonly upstreamImage: string | undefined;
}

/**
 * The releases with the named images. A tag such as `v1.36.2` also says which release upstream's tests are of. Throws `ConfigError` when
 * the chosen cells have several Kubernetes versions, or another one than the tag.
 */
export function withImages(
  releases: readonly KubernetesRelease[],
  chosen: ReadonlySet<string>,
  { nodeImage, upstreamImage }: NamedImages,
): readonly KubernetesRelease[] {
  if (nodeImage === undefined && upstreamImage === undefined) return releases;
  const [version] = chosen;
  if (version === undefined || chosen.size > 1) {
    const found = version === undefined ? 'none' : [...chosen].join(', ');
    throw new ConfigError(
      'e2e.image',
      `--node-image and --upstream-image are for cells of one Kubernetes version, and the chosen ones have ${found}`,
    );
  }
  const [, release, tagVersion] = /:v((1\.\d+)\.\d+)(?:[@-]|$)/.exec(nodeImage ?? '') ?? [];
  if (tagVersion !== undefined && tagVersion !== version)
    throw new ConfigError(
      'e2e.image',
      `${nodeImage} holds Kubernetes ${tagVersion}, and the chosen cells want ${version}`,
    );
  return releases.map((one) => {
    if (one.version !== version) return one;
    const node = nodeImage === undefined ? {} : { nodeImage, digest: undefined, release: release ?? one.release };
    return { ...one, ...node, ...(upstreamImage === undefined ? {} : { upstreamImage }) };
  });
}
