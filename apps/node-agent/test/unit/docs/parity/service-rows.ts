import type { ParityRow } from './row.ts';

/** Forwarding of packets to Services. */
export const serviceRows: readonly ParityRow[] = [
  {
    what: 'cluster IP, NodePort, external and load-balancer IP, both traffic policies, source ranges, topology hints, terminating endpoints, SCTP, dual stack',
    standing: 'same',
    note: '[scenarios](../design/scenarios.md), with real packets',
  },
  { what: '`ipMode` `VIP`, `Proxy`, or none', standing: 'same', note: '' },
  {
    what: 'an `ipMode` that is not known',
    standing: 'better',
    note: 'its address is captured as with `VIP`; kube-proxy writes no rules for it',
  },
  {
    what: 'addresses with leading zeros, IPv4-mapped addresses',
    standing: 'same',
    note: 'in objects stored before the API server checked strictly (KEP-4858: on in 1.36, permanent from 1.38)',
  },
  {
    what: '`loadBalancerSourceRanges` without a readable range',
    standing: 'better',
    note: 'all clients are refused; kube-proxy admits all',
  },
  {
    what: 'other ports of a cluster IP, cluster IPs without a Service',
    standing: 'same',
    note: 'nftables: refused, and dropped; iptables: left alone',
  },
  {
    what: 'session affinity, iptables mode',
    standing: 'same',
    note: '',
  },
  {
    what: 'session affinity, nftables mode',
    standing: 'different',
    note: '[differences](../design/session-affinity.md)',
  },
  {
    what: 'stale UDP flows of changed endpoints',
    standing: 'better',
    note: 'only flows of Services, never of other programs that use the same port number ([conntrack](../design/conntrack.md))',
  },
  {
    what: 'stale UDP flows of a Service without endpoints',
    since: '1.37',
    standing: 'same',
    note: '1.36 leaves them (kubernetes/kubernetes#139629)',
  },
  {
    what: 'UDP flows of deleted Services and removed ports',
    since: '1.38',
    standing: 'same',
    note: 'up to 1.37 kube-proxy leaves them (kubernetes/kubernetes#141371)',
  },
  {
    what: 'a Service that the kernel refuses',
    standing: 'better',
    note: 'all others are written; log, Event, metric and `/debug/forwarding` name it',
  },
  {
    what: 'Service names that exceed a comment in nftables (128 bytes)',
    since: '1.37',
    standing: 'same',
    note: 'elements carry no names here; 1.36 fails to sync (kubernetes/kubernetes#139516)',
  },
  {
    what: 'NodePorts on 127.0.0.1, iptables mode',
    standing: 'same',
    note: 'IPv4, with `route_localnet` and the rule against martians',
  },
  {
    what: 'NodePorts on 127.0.0.1 and ::1, nftables mode (KEP-6032)',
    since: '1.37',
    standing: 'same',
    note: 'TCP, through a proxy in the process, where `nodePortAddresses` names loopback; UDP and SCTP are refused. Also in the ebpf mode ([how](../design/localhost-node-ports.md)). Gate `KubeProxyNFTablesLocalhostNodePorts`: off in 1.37, on in 1.38 (kubernetes/kubernetes#142490) and here',
  },
  {
    what: 'names in the kernel, iptables mode',
    standing: 'same',
    note: "kube-proxy's, and one chain `SWITCHYARD`",
  },
  {
    what: 'names in the kernel, nftables mode',
    standing: 'different',
    note: '`inet switchyard` instead of `ip kube-proxy` and `ip6 kube-proxy`',
  },
  {
    what: 'ipvs mode',
    standing: 'missing',
    note: 'refused: deprecated in Kubernetes (KEP-5495: off by default in 1.40, removed in 1.43)',
  },
  { what: 'kernelspace mode', standing: 'missing', note: 'refused: Windows' },
];
