import { writeFile } from 'node:fs/promises';
import { seconds } from '@switchyard/core';
import { dataplaneNamed } from '@switchyard/scenarios';
import { nodeImageOf } from '../matrix/matrix.ts';
import type { Step } from '../run/run-steps.ts';
import { mustRun } from '../run/shell.ts';
import { type CellContext, kubeconfigOf } from './cell-context.ts';
import { kindConfig, type KubeProxyMode } from './kind-config.ts';
import { removeCluster } from './tear-down.ts';

/** The mode of kube-proxy that a cell is compared with: that of the same name, or the one whose defaults the dataplane has. */
export function baselineMode({ cell }: Pick<CellContext, 'cell'>): KubeProxyMode {
  return dataplaneNamed(cell.backend).kubeProxyMode;
}

/** Makes the kind cluster. What became of it when that failed stays, for diagnostics; the tear-down removes it. */
export function createCluster(context: CellContext, proxy: KubeProxyMode = 'none'): Step {
  const { shell, cluster, cell, release, folder } = context;
  const timeout = seconds(900);
  return {
    name: `create the cluster ${cluster}${proxy === 'none' ? '' : ` with kube-proxy, mode ${proxy}`}`,
    timeout,
    advice:
      'see diagnostics/ for what the nodes said; most often it is cgroup v1, too little memory, too few inotify instances ' +
      '(https://kind.sigs.k8s.io/docs/user/known-issues/), or a node image that cannot be pulled',
    run: async (signal) => {
      if (!shell.isDry) await writeFile(`${folder}/kind.yaml`, kindConfig(cell.ipFamily, proxy));
      const place = ['--name', cluster, '--image', nodeImageOf(release), '--config', `${folder}/kind.yaml`];
      const args = ['create', 'cluster', ...place, '--kubeconfig', kubeconfigOf(context), '--retain'];
      await mustRun(shell, { file: 'kind', args, timeout }, 'kind made no cluster', signal);
    },
  };
}

/** Removes a cluster that makes room for the next one of the cell. */
export function removeClusterStep({ shell, cluster }: CellContext, name: string): Step {
  return {
    name,
    timeout: seconds(300),
    advice: `kind delete cluster --name ${cluster}`,
    run: (signal) => removeCluster(shell, cluster, signal),
  };
}
