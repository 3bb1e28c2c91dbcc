import { parseIp } from '@switchyard/core';
import type { HealthProfile } from '../spec/health-profile.ts';
import { healthProfile } from '../health-profile/health-profiles.ts';
import { type AddressSource } from '../plan/ip-pool.ts';
import { planServices } from '../plan/plan.ts';
import type { LoadBalancerNode, LoadBalancerService } from '../cluster/cluster-objects.ts';
import { type HaproxyConfiguration, renderHaproxy } from '../haproxy/render-haproxy.ts';
import { lbNode, lbService } from './builders.ts';

/** The lab's two nodes, both families. */
export const twoNodes: readonly LoadBalancerNode[] = [
  lbNode('node1', ['172.18.0.11', 'fd00:172:18::11']),
  lbNode('node2', ['172.18.0.12', 'fd00:172:18::12']),
];

/** The lab's load-balancer host. */
export const sharedAddresses: AddressSource = {
  kind: 'shared',
  addresses: [parseIp('172.18.0.50'), parseIp('fd00:172:18::50')],
};

/** The experiment's Service. */
export const zeroapp: LoadBalancerService = lbService('default/zeroapp', {
  spec: { externalTrafficPolicy: 'Local', healthCheckNodePort: 32080 },
});

/** One cluster per golden configuration. */
export const exampleClusters: Readonly<Record<string, ExampleCluster>> = {
  'no-services': { services: [] },
  'local-policy': { services: [zeroapp] },
  'cluster-policy-two-ports': {
    services: [
      lbService('default/web', {
        spec: {
          externalTrafficPolicy: 'Cluster',
          ports: [
            { name: 'https', port: 443, nodePort: 30443 },
            { name: 'http', port: 80, nodePort: 30080 },
          ],
        },
      }),
    ],
  },
  'dual-stack-affinity-and-source-ranges': {
    services: [
      lbService('shop/cart', {
        spec: {
          ipFamilies: ['IPv6', 'IPv4'],
          sessionAffinity: 'ClientIP',
          loadBalancerSourceRanges: ['192.0.2.0/24', '10.0.0.0/8', '2001:db8::/32'],
        },
      }),
    ],
  },
  'excluded-nodes': {
    services: [zeroapp],
    nodes: [
      ...twoNodes,
      lbNode('control-plane', ['172.18.0.2'], {
        metadata: { labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } },
      }),
      lbNode('leaving', ['172.18.0.3'], {
        spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] },
      }),
      lbNode('deleted', ['172.18.0.4'], { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' as unknown as Date } }),
      lbNode('ipv6-only', ['fd00:172:18::5']),
    ],
  },
  'scaled-timings': {
    services: [zeroapp],
    profile: healthProfile('cloud-provider-kind', {
      interval: 500 as never,
      timeout: 250.4 as never,
      fall: 2,
      rise: 2,
    }),
  },
  'several-services-with-udp': {
    services: [
      lbService('b/dns', {
        spec: {
          ports: [
            { name: 'udp', port: 53, nodePort: 30053, protocol: 'UDP' },
            { name: 'tcp', port: 53, nodePort: 30053, protocol: 'TCP' },
          ],
        },
      }),
      lbService('a/web', { createdAt: '2026-01-02T00:00:00Z' }),
      lbService('c/same-port-but-younger', { createdAt: '2026-01-03T00:00:00Z' }),
      lbService('d/not-ours', { spec: { loadBalancerClass: 'example.com/other' } }),
      lbService('e/without-node-port', { spec: { ports: [{ port: 8080 }] } }),
    ],
  },
};

/** What a golden configuration is made from. */
export interface ExampleCluster {
  readonly services: readonly LoadBalancerService[];
  /** Default: `twoNodes`. */
  readonly nodes?: readonly LoadBalancerNode[];
  /** Default: `cloud-provider-kind` as it is. */
  readonly profile?: HealthProfile;
}

/** Plans and renders an example. */
export function renderExample({ services, nodes = twoNodes, profile }: ExampleCluster): HaproxyConfiguration {
  return renderHaproxy({
    services: planServices(services, sharedAddresses).flatMap(({ served }) => served ?? []),
    nodes,
    profile: profile ?? healthProfile('cloud-provider-kind'),
    adminSocket: '/run/switchyard-lb/test/admin.sock',
    serverStateFile: '/run/switchyard-lb/test/servers',
  });
}
