import { endpointChain, portNameOf, serviceChains } from '@switchyard/netfilter/iptables';
import type { Endpoint, ForwardingTable, ServiceForwarding } from '@switchyard/core';
import { chainNames } from '../src/render/names.ts';

/**
 * Input of kube-proxy 1.36 for `iptables-restore --noflush --counters`, for the baseline of the bench: Services with a
 * cluster IP and, perhaps, a NodePort, all policies `Cluster`; IPv4; pods told by a CIDR; localhost NodePorts on; no nfacct.
 *
 * Every sync holds *filter and *nat with all shared chains whole, KUBE-SERVICES with every Service in it; what may be left
 * out are the chains of Services that did not change (fact 44). Above 1,000 endpoints the comments of endpoints go; those of
 * cluster IPs stay (fact 45), and chains that no rule jumps to are removed at most once per syncPeriod, so a change
 * does not hold them.
 */
export function kubeProxyContent(
  table: ForwardingTable,
  podCidr: string,
  changed: 'all' | readonly ServiceForwarding[] = 'all',
): string {
  const services = [...table.services.values()].map((one) =>
    changed === 'all' ? one : (changed.find(({ key }) => key === one.key) ?? one),
  );
  const isLarge = services.reduce((sum, { endpoints }) => sum + endpoints.Cluster.length, 0) > 1000;
  const written = new Set(changed === 'all' ? services : changed);
  const chains: string[] = [];
  const rules: string[] = [];
  for (const service of services) {
    rules.push(...entriesOf(service));
    if (!written.has(service)) continue;
    chains.push(...chainsOf(service).map((name) => `:${name} - [0:0]`));
    rules.push(...rulesOf(service, podCidr, isLarge));
  }
  return [...filter, ...natHead, ...chains, ...natShared, ...rules, ...natTail, ''].join('\n');
}

/**
 * The rules by which kube-proxy's chains are reached, as a text for `iptables-restore --noflush`; kube-proxy sets them up with
 * some 30 calls of `iptables` when it starts.
 */
export const kubeProxyJumps: string = `*filter
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-FIREWALL - [0:0]
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A INPUT -j KUBE-FIREWALL
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -j KUBE-FIREWALL
COMMIT
*nat
:KUBE-SERVICES - [0:0]
:KUBE-POSTROUTING - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
COMMIT
`;

const { services: servicesChain, nodePorts, markMasq } = chainNames;

const filter: readonly string[] = [
  '*filter',
  ':KUBE-SERVICES - [0:0]',
  ':KUBE-EXTERNAL-SERVICES - [0:0]',
  ':KUBE-FORWARD - [0:0]',
  ':KUBE-NODEPORTS - [0:0]',
  ':KUBE-PROXY-FIREWALL - [0:0]',
  ':KUBE-FIREWALL - [0:0]',
  '-A KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
  '-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP',
  '-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT',
  '-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
  'COMMIT',
];

const natHead: readonly string[] = [
  '*nat',
  ':KUBE-SERVICES - [0:0]',
  ':KUBE-NODEPORTS - [0:0]',
  ':KUBE-POSTROUTING - [0:0]',
  ':KUBE-MARK-MASQ - [0:0]',
];

const natShared: readonly string[] = [
  '-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN',
  '-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000',
  '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
  '-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000',
];

const natTail: readonly string[] = [
  '-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS',
  'COMMIT',
];

interface Names {
  readonly name: string;
  readonly protocol: string;
  readonly clusterChain: string;
  readonly externalChain: string;
  readonly nodePort: number | undefined;
  /** Matches a packet to the cluster IP, with its comment. */
  readonly clusterIp: string;
}

function namesOf({ key, protocol, frontends }: ServiceForwarding): Names {
  const name = portNameOf(key);
  const lower = protocol.toLowerCase();
  const [clusterIp, nodePort] = (['clusterIP', 'nodePort'] as const).map((kind) =>
    frontends.find((frontend) => frontend.kind === kind),
  );
  return {
    name,
    protocol: lower,
    clusterChain: serviceChains(key, protocol).SVC,
    externalChain: serviceChains(key, protocol).EXT,
    nodePort: nodePort?.port,
    clusterIp: `-m comment --comment "${name} cluster IP" -m ${lower} -p ${lower} -d ${clusterIp?.address} --dport ${clusterIp?.port}`,
  };
}

/** Content of every sync for a Service. */
function entriesOf(service: ServiceForwarding): readonly string[] {
  const { name, protocol, clusterIp, clusterChain, externalChain, nodePort } = namesOf(service);
  const entry = `-A ${servicesChain} ${clusterIp} -j ${clusterChain}`;
  if (nodePort === undefined) return [entry];
  return [
    entry,
    `-A ${nodePorts} -m comment --comment ${name} -m ${protocol} -p ${protocol} --dport ${nodePort} -j ${externalChain}`,
  ];
}

function chainsOf(service: ServiceForwarding): readonly string[] {
  const { clusterChain, externalChain, nodePort } = namesOf(service);
  const endpoints = service.endpoints.Cluster.map((endpoint) => chainOf(service, endpoint));
  return [...(nodePort === undefined ? [] : [externalChain]), clusterChain, ...endpoints];
}

/** Content of a sync for a changed Service. */
function rulesOf(service: ServiceForwarding, podCidr: string, isLarge: boolean): readonly string[] {
  const { name, protocol, clusterIp, clusterChain, externalChain, nodePort } = namesOf(service);
  const endpoints = service.endpoints.Cluster;
  const comment = (text: string): string => (isLarge ? '' : ` -m comment --comment ${text}`);
  const external = [
    `-A ${externalChain} -m comment --comment "masquerade traffic for ${name} external destinations" -j ${markMasq}`,
    `-A ${externalChain} -j ${clusterChain}`,
  ];
  return [
    `-A ${clusterChain} ${clusterIp} ! -s ${podCidr} -j ${markMasq}`,
    ...(nodePort === undefined ? [] : external),
    ...endpoints.map((endpoint, index) => {
      const left = endpoints.length - index;
      const chance = left === 1 ? '' : ` -m statistic --mode random --probability ${(1 / left).toFixed(10)}`;
      return `-A ${clusterChain}${comment(`"${name} -> ${textOf(endpoint)}"`)}${chance} -j ${chainOf(service, endpoint)}`;
    }),
    ...endpoints.flatMap((endpoint) => {
      const head = `-A ${chainOf(service, endpoint)}${comment(name)}`;
      return [
        `${head} -s ${endpoint.address} -j ${markMasq}`,
        `${head} -m ${protocol} -p ${protocol} -j DNAT --to-destination ${textOf(endpoint)}`,
      ];
    }),
  ];
}

function chainOf({ key, protocol }: ServiceForwarding, endpoint: Endpoint): string {
  return endpointChain(key, protocol, textOf(endpoint));
}

function textOf({ address, port }: Endpoint): string {
  return `${address}:${port}`;
}
