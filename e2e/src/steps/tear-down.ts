import { HostError, messageOf, seconds } from '@switchyard/core';
import { clusterLabel, clusterPrefix, loadBalancerLabel } from '../cluster-name.ts';
import type { OwnerNotes } from '../owner.ts';
import type { Step } from '../run/run-steps.ts';
import { mustRun, type Shell } from '../run/shell.ts';
import type { CellContext } from './cell-context.ts';

const timeout = seconds(180);

/**
 * Removes a cluster with all that belongs to it: the containers beside it first, so that none acts on a cluster that goes. Tries everything,
 * then rejects with all that failed.
 */
export async function tearDown(
  shell: Shell,
  { cluster, owners }: { readonly cluster: string; readonly owners: OwnerNotes },
  signal: AbortSignal,
): Promise<void> {
  await removeCluster(shell, cluster, signal);
  if (!shell.isDry) await owners.drop(cluster);
}

/** Removes a cluster and all containers beside it, but not the note of its owner. Rejects with all errors. */
export async function removeCluster(shell: Shell, cluster: string, signal: AbortSignal): Promise<void> {
  const faults: string[] = [];
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      faults.push(messageOf(error));
    }
  };
  await attempt(() => removeContainers(shell, `${clusterLabel}=${cluster}`, signal));
  await attempt(() => {
    const command = { file: 'kind', args: ['delete', 'cluster', '--name', cluster], timeout };
    return mustRun(shell, command, `the cluster ${cluster} is still there`, signal);
  });
  await attempt(() => removeContainers(shell, `${loadBalancerLabel}=${cluster}`, signal));
  if (faults.length > 0) throw new HostError('e2e.tear-down', faults.join('; '));
}

async function removeContainers(shell: Shell, label: string, signal: AbortSignal): Promise<void> {
  const list = ['ps', '--all', '--quiet', '--filter', `label=${label}`];
  const ids = await mustRun(shell, { file: 'docker', args: list, timeout }, 'containers cannot be listed', signal);
  const found = ids.split(/\s+/).filter(Boolean);
  if (found.length === 0) return;
  const args = ['rm', '--force', '--volumes', ...found];
  await mustRun(shell, { file: 'docker', args, timeout }, `containers with the label ${label} are still there`, signal);
}

/**
 * Removes what earlier runs left behind when they crashed. What a living run has, and what was kept, stays; but of the own cell, which this
 * process has claimed, all goes.
 */
export function removeLeftovers(context: CellContext): Step {
  const { shell, cluster, owners, print } = context;
  return {
    name: 'look for leftovers of earlier runs',
    timeout: seconds(600),
    advice: './dev e2e --clean removes all clusters of e2e runs, kept ones too',
    run: async (signal) => {
      for (const found of await ourClusters(shell, signal)) {
        if (found !== cluster && (await owners.find(found)) !== undefined) continue;
        print(`  removing ${found}, which an earlier run left`);
        await removeCluster(shell, found, signal);
        if (found !== cluster) await owners.drop(found);
      }
    },
  };
}

/** Names of clusters that e2e runs made, from kind and from labels of their other containers, sorted. */
export async function ourClusters(shell: Shell, signal: AbortSignal): Promise<readonly string[]> {
  const clusters = { file: 'kind', args: ['get', 'clusters'], timeout };
  const format = `{{.Label "${clusterLabel}"}}`;
  const containers = {
    file: 'docker',
    args: ['ps', '--all', '--filter', `label=${clusterLabel}`, '--format', format],
    timeout,
  };
  const texts = [
    await mustRun(shell, clusters, "kind's clusters cannot be listed", signal),
    await mustRun(shell, containers, 'containers cannot be listed', signal),
  ];
  const names = texts.flatMap((text) => text.split('\n')).filter((name) => name.startsWith(clusterPrefix));
  return [...new Set(names)].sort();
}
