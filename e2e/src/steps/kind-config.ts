import type { CellFamily } from '../cell.ts';

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
