import type { LeftService } from '@switchyard/netfilter/testing';

/**
 * State that the nftables mode of kube-proxy leaves in one family: its table, with the chains that decide about a packet, as
 * `nft -f` takes it. Written after what kube-proxy 1.36 makes.
 */
export function kubeProxyTable(services: readonly LeftService[]): string {
  const ip = services[0]?.ipFamily === 'IPv6' ? 'ip6' : 'ip';
  const address = `${ip === 'ip' ? 'ipv4' : 'ipv6'}_addr`;
  const chain = ({ name }: LeftService): string => `service-AAAAAAAA-default/${name.replace(':', '/tcp__')}`;
  const ips = services.map((one) => `${one.clusterIp} . ${one.protocol} . ${one.port} : goto ${chain(one)}`);
  const ports = services.map((one) => `${one.protocol} . ${one.nodePort} : goto external-${chain(one)}`);
  const perService = services.map((one) => {
    const at = one.endpoint.lastIndexOf(':');
    const to = `${one.endpoint.slice(0, at).replaceAll(/[[\]]/g, '')} . ${one.endpoint.slice(at + 1)}`;
    return `
  chain ${chain(one)} {
    ${ip} daddr ${one.clusterIp} ${one.protocol} dport ${one.port} fib saddr type local jump mark-for-masquerade
    meta l4proto ${one.protocol} dnat ${ip} addr . port to numgen random mod 1 map { 0 : ${to} }
  }
  chain external-${chain(one)} {
    jump mark-for-masquerade
    goto ${chain(one)}
  }`;
  });
  return `table ${ip} kube-proxy {
  comment "rules for kube-proxy"
  set cluster-ips { type ${address}; elements = { ${services[0]?.clusterIp} } }
  map no-endpoint-services { type ${address} . inet_proto . inet_service : verdict; }
  chain mark-for-masquerade { meta mark set meta mark or 0x4000; }${perService.join('')}
  map service-ips { type ${address} . inet_proto . inet_service : verdict; elements = { ${ips.join(', ')} } }
  map service-nodeports { type inet_proto . inet_service : verdict; elements = { ${ports.join(', ')} } }
  chain cluster-ips-check {
    ${ip} daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"
  }
  chain services {
    ${ip} daddr . meta l4proto . th dport vmap @service-ips
    fib daddr type local meta l4proto . th dport vmap @service-nodeports
  }
  chain service-endpoints-check { ${ip} daddr . meta l4proto . th dport vmap @no-endpoint-services; }
  chain masquerading {
    mark and 0x4000 == 0 return
    meta mark set mark xor 0x4000
    masquerade fully-random
  }
  chain filter-forward {
    type filter hook forward priority -110; policy accept;
    ct state new jump service-endpoints-check
    ct state new jump cluster-ips-check
  }
  chain filter-output {
    type filter hook output priority -110; policy accept;
    ct state new jump service-endpoints-check
  }
  chain filter-output-post-dnat {
    type filter hook output priority -90; policy accept;
    ct state new jump cluster-ips-check
  }
  chain nat-prerouting { type nat hook prerouting priority dstnat; policy accept; jump services; }
  chain nat-output { type nat hook output priority -100; policy accept; jump services; }
  chain nat-postrouting { type nat hook postrouting priority srcnat; policy accept; jump masquerading; }
}
`;
}
