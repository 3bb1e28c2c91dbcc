import type { Cell } from '../cell.ts';
import type { KubernetesRelease } from '../matrix.ts';
import type { E2eOptions } from '../options.ts';
import type { E2eSurroundings } from '../program.ts';
import type { Shell } from '../run/shell.ts';
import type { Session } from '../session.ts';
import type { SkipEntry } from '../skips.ts';

/** Settings that all cells of one call share. */
export interface CellSettings
  extends
    Pick<E2eSurroundings, 'checkout' | 'network' | 'dockerSocket' | 'clock' | 'print'>,
    Pick<E2eOptions, 'isLocalBase' | 'isBuilt' | 'hasUpstream' | 'hasBaseline'>,
    Pick<Session, 'matrix' | 'owners'> {
  /** The cluster stays when the cell ends. */
  readonly isKept: boolean;
  /**
   * `up`: the cluster is made for work, without tests, and stays unless that failed. `pages`: the commands of the documentation run.
   */
  readonly purpose: 'test' | 'up' | 'pages';
  /** Number of upstream's tests that run side by side. */
  readonly upstreamJobs: number;
  readonly skips: readonly SkipEntry[];
  /** Commands of images that were built by this call already. */
  readonly built: Set<string>;
}

export interface CellContext extends CellSettings {
  readonly cell: Cell;
  readonly release: KubernetesRelease;
  /** Name of its kind cluster. */
  readonly cluster: string;
  /** Absolute path of the folder for all it leaves behind. */
  readonly folder: string;
  readonly shell: Shell;
}

/** Path of the kubeconfig for programs outside the cluster. */
export function kubeconfigOf({ folder }: Pick<CellContext, 'folder'>): string {
  return `${folder}/kubeconfig`;
}

export function kubectl(context: CellContext, ...args: readonly string[]): { file: string; args: readonly string[] } {
  return { file: 'kubectl', args: ['--kubeconfig', kubeconfigOf(context), ...args] };
}
