import type { DataplaneName } from '@switchyard/scenarios';
import type { CellFamily, CellLoadBalancer } from '../cell.ts';
import type { CellSelector } from './selector.ts';

/** A version of Kubernetes that cells are made with. */
export interface KubernetesRelease {
  /** Version, as `1.36`. */
  readonly version: string;
  /** As `1.36.4`: release of the node image, and of the e2e tests that run against it. */
  readonly release: string;
  /** kind's image of a node, without digest. */
  readonly nodeImage: string;
  /** `sha256:...`; undefined: the registry's current image of that name, which may change. */
  readonly digest: string | undefined;
  /** Image instead of registry.k8s.io's image of the release; absent: that. */
  readonly upstreamImage?: string;
}

/** Cells that the matrix leaves out. */
export interface Exclusion extends CellSelector {
  readonly reason: string;
}

/** `e2e/matrix.json`. */
export interface Matrix {
  readonly backends: readonly DataplaneName[];
  readonly ipFamilies: readonly CellFamily[];
  readonly loadBalancers: readonly CellLoadBalancer[];
  /** The oldest first. */
  readonly kubernetes: readonly KubernetesRelease[];
  /** The kind release that the node images were made with; an older kind is refused. */
  readonly kind: string;
  readonly exclude: readonly Exclusion[];
  /** Beginnings of the names of upstream's e2e tests that run in each cell. */
  readonly upstreamFocus: readonly string[];
}

/** The image as an argument of kind. */
export function nodeImageOf({ nodeImage, digest }: KubernetesRelease): string {
  return digest === undefined ? nodeImage : `${nodeImage}@${digest}`;
}

/** The image with `e2e.test` and `ginkgo` of a release. */
export function upstreamImageOf({ release, upstreamImage }: KubernetesRelease): string {
  return upstreamImage ?? `registry.k8s.io/conformance:v${release}`;
}
