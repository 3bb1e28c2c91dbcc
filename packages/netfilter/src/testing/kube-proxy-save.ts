import type { IpFamily } from '@switchyard/core';

/** One Service as kube-proxy would have it: a cluster IP and a NodePort, to one endpoint. */
export interface LeftService {
  readonly ipFamily: IpFamily;
  readonly name: string;
  readonly clusterIp: string;
  readonly port: number;
  readonly nodePort: number;
  readonly protocol: 'tcp' | 'udp';
  /** Address and port, IPv6 in brackets. */
  readonly endpoint: string;
}

/**
 * Rules that kube-proxy's iptables mode leaves for some Services, beside the kubelet's and foreign chains, as
 * `iptables-restore` takes it. Written after what kube-proxy 1.36 makes.
 */
export function kubeProxySave(services: readonly LeftService[]): string {
  return [nat(services), filter(services), mangle].join('');
}

type Ids = Readonly<Record<'SVC' | 'SEP' | 'EXT', string>>;

/** Chain names of the right shape, different for each Service. */
function idsOf(index: number): Ids {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const id = `${letters[index % 32] ?? 'A'}${letters[Math.floor(index / 32) % 32] ?? 'A'}`.padEnd(16, 'Q');
  return { SVC: `KUBE-SVC-${id}`, SEP: `KUBE-SEP-${id}`, EXT: `KUBE-EXT-${id}` };
}

function nat(services: readonly LeftService[]): string {
  const chains = services.flatMap((_, index) => Object.values(idsOf(index)).map((chain) => `:${chain} - [0:0]\n`));
  return `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-MARK-DROP - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-PROXY-CANARY - [0:0]
:KUBE-SERVICES - [0:0]
${chains.join('')}-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
${services.map((service, index) => natRules(service, idsOf(index))).join('')}-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
COMMIT
`;
}

function natRules(
  { name, clusterIp, port, nodePort, protocol, endpoint, ipFamily }: LeftService,
  { SVC, SEP, EXT }: Ids,
): string {
  const host = `${clusterIp}/${ipFamily === 'IPv4' ? 32 : 128}`;
  const source = `${endpoint.slice(0, endpoint.lastIndexOf(':')).replaceAll(/[[\]]/g, '')}/${ipFamily === 'IPv4' ? 32 : 128}`;
  const comment = `-m comment --comment "default/${name}"`;
  const arrow = `-m comment --comment "default/${name} -> ${endpoint}"`;
  return `-A KUBE-SERVICES -d ${host} -p ${protocol} -m comment --comment "default/${name} cluster IP" -m ${protocol} --dport ${port} -j ${SVC}
-A KUBE-NODEPORTS -p ${protocol} ${comment} -m ${protocol} --dport ${nodePort} -j ${EXT}
-A ${EXT} -m comment --comment "masquerade traffic for default/${name} external destinations" -j KUBE-MARK-MASQ
-A ${EXT} -j ${SVC}
-A ${SVC} ${arrow} -j ${SEP}
-A ${SEP} -s ${source} ${comment} -j KUBE-MARK-MASQ
-A ${SEP} -p ${protocol} ${comment} -m ${protocol} -j DNAT --to-destination ${endpoint}
`;
}

function filter(services: readonly LeftService[]): string {
  const family = services[0]?.ipFamily ?? 'IPv4';
  const loopback =
    family === 'IPv4'
      ? '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP\n'
      : '';
  return `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-CANARY - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SERVICES - [0:0]
:SITE-RULES - [0:0]
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A INPUT -j KUBE-FIREWALL
-A INPUT -m comment --comment "ours, not -j KUBE-SERVICES" -j SITE-RULES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -j KUBE-FIREWALL
${loopback}-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
-A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A SITE-RULES -m comment --comment "a rule of somebody else" -j ACCEPT
COMMIT
`;
}

const mangle = `*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-IPTABLES-HINT - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:KUBE-PROXY-CANARY - [0:0]
COMMIT
`;
