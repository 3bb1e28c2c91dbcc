import { birthmarkChain } from '@switchyard/netfilter/iptables';

/** kube-proxy's names of chains: operators and their tools search for them (pkg/proxy/iptables, Kubernetes 1.36). */
export const chainNames = {
  services: 'KUBE-SERVICES',
  externalServices: 'KUBE-EXTERNAL-SERVICES',
  nodePorts: 'KUBE-NODEPORTS',
  postrouting: 'KUBE-POSTROUTING',
  markMasq: 'KUBE-MARK-MASQ',
  forward: 'KUBE-FORWARD',
  proxyFirewall: 'KUBE-PROXY-FIREWALL',
  /** Shared with the kubelet: rules are added, the chain is never emptied. */
  kubeletFirewall: 'KUBE-FIREWALL',
  canary: 'KUBE-PROXY-CANARY',
  /** The birthmark, with the time of the last heartbeat (mangle). Where it exists, chains with kube-proxy's names are this agent's. */
  mark: birthmarkChain as 'SWITCHYARD',
} as const;

/** Counters of netfilter accounting, by the names that kube-proxy gives them; its metrics read them. */
export const nfacctNames = {
  /** Packets dropped because conntrack called them INVALID. */
  invalidDropped: 'ct_state_invalid_dropped_pkts',
  /** Connections to NodePorts on 127.0.0.0/8. */
  localhostNodePorts: 'localhost_nps_accepted_pkts',
} as const;
