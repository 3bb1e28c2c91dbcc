import type { Clock } from '@switchyard/core';
import type { Cell } from '../cell.ts';
import type { KubernetesRelease, Matrix } from '../matrix/matrix.ts';
import type { OwnerNotes } from '../owner.ts';
import type { Shell } from '../run/shell.ts';
import type { SkipEntry } from '../skips/skip-entry.ts';

/** Settings that all cells of one call share. */
export interface CellSettings {
  /** Absolute path of the checkout whose images and manifests are used. */
  readonly checkout: string;
  /** Docker's network of kind's nodes. */
  readonly network: string;
  /** The engine's socket as containers mount it. */
  readonly dockerSocket: string;
  /** Images are built on a base made of Debian packages, without a registry. */
  readonly isLocalBase: boolean;
  /** They are not built: the engine has them. */
  readonly isBuilt: boolean;
  /** The cluster stays when the cell ends. */
  readonly isKept: boolean;
  /**
   * `up`: the cluster is made for work, without tests, and stays unless that failed. `pages`: the commands of the documentation run.
   */
  readonly purpose: 'test' | 'up' | 'pages';
  /** Upstream's e2e tests run too. */
  readonly hasUpstream: boolean;
  /** They run with kube-proxy before. */
  readonly hasBaseline: boolean;
  /** How many of upstream's tests run side by side. */
  readonly upstreamJobs: number;
  readonly matrix: Matrix;
  readonly skips: readonly SkipEntry[];
  readonly owners: OwnerNotes;
  readonly clock: Clock;
  readonly print: (line: string) => void;
  /** Commands of images that were built by this call already. */
  readonly built: Set<string>;
}

/** A cell at work. */
export interface CellContext extends CellSettings {
  readonly cell: Cell;
  readonly release: KubernetesRelease;
  /** Name of its kind cluster. */
  readonly cluster: string;
  /** Absolute path of the folder for all it leaves behind. */
  readonly folder: string;
  readonly shell: Shell;
}

/** For programs outside the cluster. */
export function kubeconfigOf({ folder }: Pick<CellContext, 'folder'>): string {
  return `${folder}/kubeconfig`;
}

/** `kubectl` with the cell's kubeconfig. */
export function kubectl(context: CellContext, ...args: readonly string[]): { file: string; args: readonly string[] } {
  return { file: 'kubectl', args: ['--kubeconfig', kubeconfigOf(context), ...args] };
}
