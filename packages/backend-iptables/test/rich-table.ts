import type { ForwardingTable, IpFamily, PodDetector } from '@switchyard/core';
import { type PortSpec, service, slice, tableOf, tableOptions } from '@switchyard/core/testing';

/** Options of a rich table. */
export interface RichOptions {
  readonly ipFamily: IpFamily;
  /** Default: by a range of addresses. */
  readonly podDetector?: PodDetector;
  /** Default: all addresses. */
  readonly nodePortCidrs?: readonly string[];
  readonly localhostNodePorts?: boolean;
  readonly masqueradeAll?: boolean;
}

const prefixes: Readonly<Record<IpFamily, readonly [cluster: string, pod: string, outside: string]>> = {
  IPv4: ['10.96.0.', '10.244.0.', '198.51.100.'],
  IPv6: ['fd00:10:96::', 'fd00:10:244::', '2001:db8::'],
};

const long = 'x'.repeat(63);
const here = 'n1';
const http: PortSpec = { name: 'http', port: 80 };

/** A table with every kind of rule: all protocols, policies, refusals, source ranges, affinity, the longest names. */
export function richTable(options: RichOptions): ForwardingTable {
  const [cluster, pod, outside] = prefixes[options.ipFamily];
  const ranges = options.ipFamily === 'IPv4' ? ['203.0.113.0/24', '192.0.2.7/32'] : ['2001:db8:1::/48', '::7/128'];
  const inRange = {
    loadBalancerIps: [`${outside}7`, `${outside}8`],
    sourceRanges: [...ranges, '10.0.0.0/8', 'fd00::/8'],
  };
  const local = [`${pod}5`, `${pod}50`].map((ip) => ({ ip, node: here }));
  const remote = [`${pod}9`, `${pod}10`, `${pod}11`].map((ip) => ({ ip, node: 'n2' }));
  const everywhere = { externalIps: [`${outside}20`], loadBalancerIps: [`${outside}21`] };
  const ports = (nodePort: number): readonly PortSpec[] => [{ ...http, nodePort }];
  const endpointPorts = [{ name: 'http', port: 8080 }];
  const at = (number: number): readonly string[] => [`${cluster}${number}`];
  const protocols = (['TCP', 'UDP', 'SCTP'] as const).map((protocol, index) => ({
    name: `p-${protocol.toLowerCase()}`,
    protocol,
    port: 53,
    nodePort: 30053 + index,
  }));
  return tableOf(
    {
      services: [
        service('shop/cart', { clusterIps: at(10), ports: ports(30080), ...everywhere }),
        service('shop/local', { clusterIps: at(11), ports: ports(30081), ...inRange, external: 'Local' }),
        service('shop/away', {
          clusterIps: at(12),
          ports: ports(30082),
          externalIps: [`${outside}30`],
          loadBalancerIps: [`${outside}31`],
          sourceRanges: ranges,
          external: 'Local',
          internal: 'Local',
        }),
        service('shop/nobody', {
          clusterIps: at(13),
          ports: [{ nodePort: 30083 }],
          externalIps: [`${outside}40`],
          loadBalancerIps: [`${outside}41`],
        }),
        service('shop/dns', { clusterIps: at(14), ports: protocols }),
        service('shop/sticky', { clusterIps: at(15), ports: ports(30084), affinitySeconds: 10_800, external: 'Local' }),
        service('shop/inside', { clusterIps: at(16), ports: [http], internal: 'Local' }),
        service(`${long}/${long}`, {
          clusterIps: at(17),
          ports: [{ name: long, port: 65_535, nodePort: 32_767 }],
          loadBalancerIps: [`${outside}50`],
          sourceRanges: ranges,
          external: 'Local',
        }),
        service('shop/probed', {
          clusterIps: at(18),
          ports: ports(30085),
          loadBalancerIps: [`${outside}60`],
          external: 'Local',
          healthCheckNodePort: 31_000,
        }),
      ],
      slices: [
        slice('shop/cart', { ports: endpointPorts, endpoints: [...remote, ...local] }),
        slice('shop/local', { ports: endpointPorts, endpoints: [...remote, ...local] }),
        slice('shop/away', { ports: endpointPorts, endpoints: remote }),
        slice('shop/dns', {
          ports: protocols.map(({ name, protocol }, index) => ({ name, protocol, port: 8053 + index })),
          endpoints: local,
        }),
        slice('shop/sticky', { ports: endpointPorts, endpoints: [...remote, ...local] }),
        slice('shop/inside', { ports: endpointPorts, endpoints: [...remote, ...local] }),
        slice(`${long}/${long}`, { ports: [{ name: long, port: 65_535 }], endpoints: remote }),
        slice('shop/probed', { ports: endpointPorts, endpoints: local }),
      ],
    },
    tableOptions({ ...options, nodeName: here }),
  );
}
