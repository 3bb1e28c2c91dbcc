import type { ForwardingTable, ServiceForwarding } from '@switchyard/core';

/**
 * The same table in the shape that kube-proxy's nftables mode gives it (1.36): per Service port one chain with one
 * anonymous map from a random number to its endpoints, reached by a map of addresses to chains. Made from a reading of
 * its sources, for comparison only; IPv4 and cluster IPs, which is what the bench sends to.
 */
export function chainPerService(table: ForwardingTable, podCidr: string): string {
  const services = [...table.services.values()].filter(({ endpoints }) => endpoints.Cluster.length > 0);
  const names = new Map(services.map((service, index) => [service, `service-${index}`]));
  return [
    'table ip chain-per-service {',
    ...objects,
    ...services.flatMap((service) => serviceChain(service, names.get(service) ?? '', podCidr)),
    ...baseChains,
    '}',
    `add element ip chain-per-service cluster-ips { ${services.map(clusterIpOf).join(', ')} }`,
    `add element ip chain-per-service service-ips { ${services
      .map((service) => `${clusterIpOf(service)} . ${place(service)} : goto ${names.get(service)}`)
      .join(', ')} }`,
    '',
  ].join('\n');
}

function clusterIpOf({ frontends }: ServiceForwarding): string {
  return frontends.find(({ kind }) => kind === 'clusterIP')?.address ?? '';
}

function place({ frontends, protocol }: ServiceForwarding): string {
  return `${protocol.toLowerCase()} . ${frontends[0]?.port}`;
}

function serviceChain(service: ServiceForwarding, name: string, podCidr: string): string[] {
  const protocol = service.protocol.toLowerCase();
  const endpoints = service.endpoints.Cluster;
  const elements = endpoints.map(({ address, port }, index) => `${index} : ${address} . ${port}`);
  return [
    `  chain ${name} {`,
    `    ip daddr ${clusterIpOf(service)} ${protocol} dport ${service.frontends[0]?.port} ip saddr != ${podCidr} jump mark-for-masquerade`,
    `    meta l4proto ${protocol} dnat ip addr . port to numgen random mod ${endpoints.length} map { ${elements.join(', ')} }`,
    '  }',
  ];
}

const objects: readonly string[] = [
  '  set cluster-ips { type ipv4_addr; }',
  '  set nodeport-ips { type ipv4_addr; }',
  '  set hairpin-connections { type ipv4_addr . ipv4_addr . inet_proto . inet_service; }',
  '  map firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict; }',
  '  map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; }',
  '  map service-nodeports { type inet_proto . inet_service : verdict; }',
  '  map no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict; }',
  '  map no-endpoint-nodeports { type inet_proto . inet_service : verdict; }',
  '  chain mark-for-masquerade { meta mark set meta mark or 0x4000; }',
];

/** Rules before translation stand in filter hooks of their own: they see every new connection, as in kube-proxy. */
const baseChains: readonly string[] = [
  '  chain services {',
  '    ip daddr . meta l4proto . th dport vmap @service-ips',
  '    ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports',
  '  }',
  '  chain firewall-check { ip daddr . meta l4proto . th dport vmap @firewall-ips; }',
  '  chain service-endpoints-check { ip daddr . meta l4proto . th dport vmap @no-endpoint-services; }',
  '  chain cluster-ips-check { ip daddr @cluster-ips reject; }',
  '  chain masquerading {',
  '    meta mark and 0x4000 != 0 meta mark set meta mark xor 0x4000 masquerade fully-random',
  '    ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random',
  '  }',
  '  chain filter-prerouting { type filter hook prerouting priority -110; ct state new jump firewall-check; }',
  '  chain filter-forward { type filter hook forward priority 0;',
  '    ct state new jump service-endpoints-check',
  '    ct state new jump cluster-ips-check',
  '  }',
  '  chain nat-prerouting { type nat hook prerouting priority -100; jump services; }',
  '  chain nat-postrouting { type nat hook postrouting priority 100; jump masquerading; }',
];
