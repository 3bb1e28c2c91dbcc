import type { ForwardingTable } from '@switchyard/core';
import { service, slice, tableOf, tableOptions } from '@switchyard/core/testing';

const ports = [{ name: 'p80', port: 80 }];
const withNodePort = (nodePort: number): typeof ports => ports.map((port) => ({ ...port, nodePort }));
const pods = '10.0.0.0/8';

/** The six Services by which kube-proxy tests its rules as a whole: every kind of frontend, both policies, affinity, ranges. */
export const kubeProxyCluster: ForwardingTable = tableOf(
  {
    services: [
      service('ns1/svc1', { clusterIps: ['172.30.0.41'], ports }),
      service('ns2/svc2', {
        clusterIps: ['172.30.0.42'],
        ports: withNodePort(3001),
        loadBalancerIps: ['1.2.3.4'],
        externalIps: ['192.168.99.22'],
        external: 'Local',
        healthCheckNodePort: 30_000,
      }),
      service('ns3/svc3', { clusterIps: ['172.30.0.43'], ports: withNodePort(3003) }),
      service('ns4/svc4', { clusterIps: ['172.30.0.44'], ports, externalIps: ['192.168.99.33'] }),
      service('ns5/svc5', {
        clusterIps: ['172.30.0.45'],
        ports: withNodePort(3002),
        loadBalancerIps: ['5.6.7.8'],
        sourceRanges: ['203.0.113.0/25'],
        affinitySeconds: 10_800,
      }),
      service('ns6/svc6', { clusterIps: ['172.30.0.46'], ports }),
    ],
    slices: [
      slice('ns1/svc1', { ports, endpoints: ['10.180.0.1'] }),
      slice('ns2/svc2', { ports, endpoints: ['10.180.0.2'] }),
      slice('ns3/svc3', { ports, endpoints: ['10.180.0.3'] }),
      slice('ns4/svc4', { ports, endpoints: ['10.180.0.4', { ip: '10.180.0.5', node: 'n1' }] }),
      slice('ns5/svc5', { ports, endpoints: ['10.180.0.3'] }),
    ],
  },
  tableOptions({ podCidr: pods, localhostNodePorts: true }),
);

const tcp = '-m tcp -p tcp';
const to = (address: string, port = 80): string => `${tcp} -d ${address} --dport ${port}`;
const note = (text: string): string => `-m comment --comment "${text}"`;
const counter = '-m nfacct --nfacct-name localhost_nps_accepted_pkts';
const nowhere = note('ns2/svc2:p80 has no local endpoints');

/** Both rules of an endpoint, in kube-proxy's order of words. */
const endpoint = (label: string, address: string, affinity = ''): readonly string[] => [
  `${note(label)} -s ${address} -j KUBE-MARK-MASQ`,
  `${note(label)} ${affinity}${tcp} -j DNAT --to-destination ${address}:80`,
];
const masquerade = (label: string, ip: string): string =>
  `${note(`${label} cluster IP`)} ${to(ip)} ! -s ${pods} -j KUBE-MARK-MASQ`;
const external = (label: string, chain: string): readonly string[] => [
  `${note(`masquerade traffic for ${label} external destinations`)} -j KUBE-MARK-MASQ`,
  `-j ${chain}`,
];
const nodePort = (label: string, port: number, chain: string): readonly string[] => [
  `${note(label)} ${tcp} -d 127.0.0.0/8 --dport ${port} ${counter} -j ${chain}`,
  `${note(label)} ${tcp} --dport ${port} -j ${chain}`,
];

/**
 * Input of kube-proxy 1.36 for `iptables-restore` with `kubeProxyCluster`, by table and chain, with its chain names and in its order
 * of words. Pods are in 10.0.0.0/8; NodePorts answer on loopback; packets are counted; iptables has no `--random-fully`.
 */
export const kubeProxyRules: ReadonlyMap<string, readonly string[]> = new Map([
  ['filter KUBE-NODEPORTS', [`${note('ns2/svc2:p80 health check node port')} ${tcp} --dport 30000 -j ACCEPT`]],
  ['filter KUBE-SERVICES', [`${note('ns6/svc6:p80 has no endpoints')} ${to('172.30.0.46')} -j REJECT`]],
  [
    'filter KUBE-EXTERNAL-SERVICES',
    [
      `${nowhere} ${to('192.168.99.22')} -j DROP`,
      `${nowhere} ${to('1.2.3.4')} -j DROP`,
      `${nowhere} -m addrtype --dst-type LOCAL ${tcp} --dport 3001 -j DROP`,
    ],
  ],
  [
    'filter KUBE-FIREWALL',
    [
      `${note('block incoming localnet connections')} -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`,
    ],
  ],
  [
    'filter KUBE-FORWARD',
    [
      '-m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP',
      `${note('kubernetes forwarding rules')} -m mark --mark 0x4000/0x4000 -j ACCEPT`,
      `${note('kubernetes forwarding conntrack rule')} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
    ],
  ],
  [
    'filter KUBE-PROXY-FIREWALL',
    [`${note('ns5/svc5:p80 traffic not accepted by KUBE-FW-NUKIZ6OKUXPJNT4C')} ${to('5.6.7.8')} -j DROP`],
  ],
  ['nat KUBE-MARK-MASQ', ['-j MARK --or-mark 0x4000']],
  [
    'nat KUBE-POSTROUTING',
    [
      '-m mark ! --mark 0x4000/0x4000 -j RETURN',
      '-j MARK --xor-mark 0x4000',
      `${note('kubernetes service traffic requiring SNAT')} -j MASQUERADE`,
    ],
  ],
  [
    'nat KUBE-NODEPORTS',
    [
      ...nodePort('ns2/svc2:p80', 3001, 'KUBE-EXT-GNZBNJ2PO5MGZ6GT'),
      ...nodePort('ns3/svc3:p80', 3003, 'KUBE-EXT-X27LE4BHSL4DOUIK'),
      ...nodePort('ns5/svc5:p80', 3002, 'KUBE-EXT-NUKIZ6OKUXPJNT4C'),
    ],
  ],
  [
    'nat KUBE-SERVICES',
    [
      `${note('ns1/svc1:p80 cluster IP')} ${to('172.30.0.41')} -j KUBE-SVC-XPGD46QRK7WJZT7O`,
      `${note('ns2/svc2:p80 cluster IP')} ${to('172.30.0.42')} -j KUBE-SVC-GNZBNJ2PO5MGZ6GT`,
      `${note('ns2/svc2:p80 external IP')} ${to('192.168.99.22')} -j KUBE-EXT-GNZBNJ2PO5MGZ6GT`,
      `${note('ns2/svc2:p80 loadbalancer IP')} ${to('1.2.3.4')} -j KUBE-EXT-GNZBNJ2PO5MGZ6GT`,
      `${note('ns3/svc3:p80 cluster IP')} ${to('172.30.0.43')} -j KUBE-SVC-X27LE4BHSL4DOUIK`,
      `${note('ns4/svc4:p80 cluster IP')} ${to('172.30.0.44')} -j KUBE-SVC-4SW47YFZTEDKD3PK`,
      `${note('ns4/svc4:p80 external IP')} ${to('192.168.99.33')} -j KUBE-EXT-4SW47YFZTEDKD3PK`,
      `${note('ns5/svc5:p80 cluster IP')} ${to('172.30.0.45')} -j KUBE-SVC-NUKIZ6OKUXPJNT4C`,
      `${note('ns5/svc5:p80 loadbalancer IP')} ${to('5.6.7.8')} -j KUBE-FW-NUKIZ6OKUXPJNT4C`,
      `${note('kubernetes service nodeports; NOTE: this must be the last rule in this chain')} -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS`,
    ],
  ],
  ['nat KUBE-EXT-4SW47YFZTEDKD3PK', external('ns4/svc4:p80', 'KUBE-SVC-4SW47YFZTEDKD3PK')],
  [
    'nat KUBE-EXT-GNZBNJ2PO5MGZ6GT',
    [
      `${note('pod traffic for ns2/svc2:p80 external destinations')} -s ${pods} -j KUBE-SVC-GNZBNJ2PO5MGZ6GT`,
      `${note('masquerade LOCAL traffic for ns2/svc2:p80 external destinations')} -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ`,
      `${note('route LOCAL traffic for ns2/svc2:p80 external destinations')} -m addrtype --src-type LOCAL -j KUBE-SVC-GNZBNJ2PO5MGZ6GT`,
    ],
  ],
  ['nat KUBE-EXT-NUKIZ6OKUXPJNT4C', external('ns5/svc5:p80', 'KUBE-SVC-NUKIZ6OKUXPJNT4C')],
  ['nat KUBE-EXT-X27LE4BHSL4DOUIK', external('ns3/svc3:p80', 'KUBE-SVC-X27LE4BHSL4DOUIK')],
  [
    'nat KUBE-FW-NUKIZ6OKUXPJNT4C',
    [
      `${note('ns5/svc5:p80 loadbalancer IP')} -s 203.0.113.0/25 -j KUBE-EXT-NUKIZ6OKUXPJNT4C`,
      note('other traffic to ns5/svc5:p80 will be dropped by KUBE-PROXY-FIREWALL'),
    ],
  ],
  ['nat KUBE-SEP-C6EBXVWJJZMIWKLZ', endpoint('ns4/svc4:p80', '10.180.0.5')],
  [
    'nat KUBE-SEP-I77PXRDZVX7PMWMN',
    endpoint('ns5/svc5:p80', '10.180.0.3', '-m recent --name KUBE-SEP-I77PXRDZVX7PMWMN --set '),
  ],
  ['nat KUBE-SEP-OYPFS5VJICHGATKP', endpoint('ns3/svc3:p80', '10.180.0.3')],
  ['nat KUBE-SEP-RS4RBKLTHTF2IUXJ', endpoint('ns2/svc2:p80', '10.180.0.2')],
  ['nat KUBE-SEP-SXIVWICOYRO3J4NJ', endpoint('ns1/svc1:p80', '10.180.0.1')],
  ['nat KUBE-SEP-UKSFD7AGPMPPLUHC', endpoint('ns4/svc4:p80', '10.180.0.4')],
  [
    'nat KUBE-SVC-4SW47YFZTEDKD3PK',
    [
      masquerade('ns4/svc4:p80', '172.30.0.44'),
      `${note('ns4/svc4:p80 -> 10.180.0.4:80')} -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-UKSFD7AGPMPPLUHC`,
      `${note('ns4/svc4:p80 -> 10.180.0.5:80')} -j KUBE-SEP-C6EBXVWJJZMIWKLZ`,
    ],
  ],
  [
    'nat KUBE-SVC-GNZBNJ2PO5MGZ6GT',
    [
      masquerade('ns2/svc2:p80', '172.30.0.42'),
      `${note('ns2/svc2:p80 -> 10.180.0.2:80')} -j KUBE-SEP-RS4RBKLTHTF2IUXJ`,
    ],
  ],
  [
    'nat KUBE-SVC-NUKIZ6OKUXPJNT4C',
    [
      masquerade('ns5/svc5:p80', '172.30.0.45'),
      `${note('ns5/svc5:p80 -> 10.180.0.3:80')} -m recent --name KUBE-SEP-I77PXRDZVX7PMWMN --rcheck --seconds 10800 --reap -j KUBE-SEP-I77PXRDZVX7PMWMN`,
      `${note('ns5/svc5:p80 -> 10.180.0.3:80')} -j KUBE-SEP-I77PXRDZVX7PMWMN`,
    ],
  ],
  [
    'nat KUBE-SVC-X27LE4BHSL4DOUIK',
    [
      masquerade('ns3/svc3:p80', '172.30.0.43'),
      `${note('ns3/svc3:p80 -> 10.180.0.3:80')} -j KUBE-SEP-OYPFS5VJICHGATKP`,
    ],
  ],
  [
    'nat KUBE-SVC-XPGD46QRK7WJZT7O',
    [
      masquerade('ns1/svc1:p80', '172.30.0.41'),
      `${note('ns1/svc1:p80 -> 10.180.0.1:80')} -j KUBE-SEP-SXIVWICOYRO3J4NJ`,
    ],
  ],
]);
