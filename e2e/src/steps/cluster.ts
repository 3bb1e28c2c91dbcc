import { writeFile } from 'node:fs/promises';
import { HostError, messageOf, seconds } from '@switchyard/core';
import { dataplaneNamed } from '@switchyard/scenarios';
import { nodeImageOf } from '../matrix.ts';
import type { Step } from '../run/run-steps.ts';
import { mustRun, type Shell } from '../run/shell.ts';
import { type CellContext, kubeconfigOf } from './cell-context.ts';
import { type CellFamily, clusterLabel, clusterPrefix, loadBalancerLabel } from '../cell.ts';
import type { OwnerNotes } from '../owner.ts';

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

/** The cluster's ranges: kind's defaults, explicit because the agent gets them too. */
export const podSubnets: Readonly<Record<CellFamily, string>> = {
  ipv4: '10.244.0.0/16',
  ipv6: 'fd00:10:244::/56',
  dual: '10.244.0.0/16,fd00:10:244::/56',
};

const serviceSubnets: Readonly<Record<CellFamily, string>> = {
  ipv4: '10.96.0.0/16',
  ipv6: 'fd00:10:96::/112',
  dual: '10.96.0.0/16,fd00:10:96::/112',
};

/** kind's `networking.kubeProxyMode`: `none`, or a mode of kube-proxy. */
export type KubeProxyMode = string;

/**
 * A cluster with a control plane and two workers in zones of their own. The API server is always published on
 * 127.0.0.1: not every machine has ::1.
 */
export function kindConfig(ipFamily: CellFamily, kubeProxyMode: KubeProxyMode = 'none'): string {
  return `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  kubeProxyMode: ${kubeProxyMode}
  ipFamily: ${ipFamily}
  apiServerAddress: 127.0.0.1
  podSubnet: "${podSubnets[ipFamily]}"
  serviceSubnet: "${serviceSubnets[ipFamily]}"
nodes:
  - role: control-plane
  - role: worker
    labels:
      topology.kubernetes.io/zone: zone-a
  - role: worker
    labels:
      topology.kubernetes.io/zone: zone-b
`;
}

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
async function removeCluster(shell: Shell, cluster: string, signal: AbortSignal): Promise<void> {
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
