import type { Release } from './row.ts';

/** Public sources that the statements about one release hold for. */
export interface ComparedSource {
  readonly release: Release;
  readonly state: string;
  readonly read: string;
}

/** The sources of every table in this folder. */
export const sources: readonly ComparedSource[] = [
  {
    release: '1.36',
    state: 'released',
    read: "kubernetes/kubernetes 1.36; tags v0.36.0 to v0.36.3 of kubernetes/kube-proxy, component-base and apiserver; the project's measurements with kube-proxy 1.36.2",
  },
  {
    release: '1.37',
    state: 'released on 2026-08-26',
    read: 'tag v0.37.0-beta.0 of the same repositories; the release notes of 1.37; the feature gate table in the documentation of 1.37; the metrics of the tag v1.37.0 as others describe them',
  },
  {
    release: '1.38',
    state: 'not released',
    read: 'changelog of v1.38.0-alpha.1 (September 2026). A later change is named with its pull request or KEP. The rest of 1.38 is assumed to stay as in 1.37',
  },
];
