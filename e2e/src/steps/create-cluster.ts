import { writeFile } from 'node:fs/promises';
import { seconds } from '@switchyard/core';
import { nodeImageOf } from '../matrix/matrix.ts';
import type { Step } from '../run/run-steps.ts';
import { mustRun } from '../run/shell.ts';
import { type CellContext, kubeconfigOf } from './cell-context.ts';
import { kindConfig } from './kind-config.ts';

/** Makes the kind cluster. What became of it when that failed stays, for diagnostics; the tear-down removes it. */
export function createCluster(context: CellContext): Step {
  const { shell, cluster, cell, release, folder } = context;
  const timeout = seconds(900);
  return {
    name: `create the cluster ${cluster}`,
    timeout,
    advice:
      'see diagnostics/ for what the nodes said; most often it is cgroup v1, too little memory, too few inotify instances ' +
      '(https://kind.sigs.k8s.io/docs/user/known-issues/), or a node image that cannot be pulled',
    run: async (signal) => {
      if (!shell.isDry) await writeFile(`${folder}/kind.yaml`, kindConfig(cell.ipFamily));
      const place = ['--name', cluster, '--image', nodeImageOf(release), '--config', `${folder}/kind.yaml`];
      const args = ['create', 'cluster', ...place, '--kubeconfig', kubeconfigOf(context), '--retain'];
      await mustRun(shell, { file: 'kind', args, timeout }, 'kind made no cluster', signal);
    },
  };
}
