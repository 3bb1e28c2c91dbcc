import { ipFamilyOf } from '@switchyard/core';
import type { EngineContainer } from './container-inspect.ts';
import { isClusterName, kindLabels } from './container-names.ts';

/** The containers of one kind cluster that matter for reaching it. */
export interface KindContainers {
  readonly cluster: string;
  /** Running control planes by name; the kubeconfig is read from the first. */
  readonly controlPlanes: readonly EngineContainer[];
  /** Container that serves the API: the load balancer of a cluster with several control planes, else the control plane. Undefined: it does not run. */
  readonly server: EngineContainer | undefined;
}

/** Sorts the containers with kind's label into clusters, by name. A cluster is there as long as any of its containers is, running or not. */
export function kindClusters(containers: readonly EngineContainer[]): readonly KindContainers[] {
  const byCluster = Map.groupBy(containers, ({ labels }) => labels[kindLabels.cluster] ?? '');
  return [...byCluster]
    .filter(([cluster]) => isClusterName(cluster))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([cluster, all]) => {
      const running = all.filter(({ state }) => state === 'running').sort((a, b) => (a.name < b.name ? -1 : 1));
      const ofRole = (role: string): readonly EngineContainer[] =>
        running.filter(({ labels }) => labels[kindLabels.role] === role);
      const controlPlanes = ofRole('control-plane');
      const hasBalancer = all.some(({ labels }) => labels[kindLabels.role] === 'external-load-balancer');
      const server = hasBalancer ? ofRole('external-load-balancer')[0] : controlPlanes[0];
      return { cluster, controlPlanes, server };
    });
}

const apiPort = 6443;

/**
 * The API server's URL as reached from here: on the machine through the port kind published, on the network by the container's address. Undefined: it
 * has neither.
 */
export function serverUrl(server: EngineContainer, isInsideNetwork: boolean): string | undefined {
  if (isInsideNetwork) {
    const address = server.addresses.find((ip) => ipFamilyOf(ip) === 'IPv4') ?? server.addresses[0];
    return address === undefined ? undefined : `https://${inUrl(address)}:${apiPort}`;
  }
  const published = server.published.find(({ port }) => port === `${apiPort}/tcp`);
  if (published === undefined) return undefined;
  const { hostAddress, hostPort } = published;
  const anywhere: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
  return `https://${inUrl(anywhere[hostAddress] ?? hostAddress)}:${hostPort}`;
}

function inUrl(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
