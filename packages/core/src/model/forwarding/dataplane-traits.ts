/**
 * Differences between dataplanes that packets, users and scrapes of metrics observe. Each backend package exports its
 * own value under `./traits`. Code outside the backends reads these fields, never the name.
 */
export interface DataplaneTraits<Name extends string = string> {
  /** Name in `--proxy-mode`, `/proxyMode` and reports. Texts name the dataplane by it. */
  readonly name: Name;
  /**
   * The comparable mode of kube-proxy: same defaults, and the section of `KubeProxyConfiguration` that the dataplane reads.
   */
  readonly kubeProxyMode: string;
  /**
   * Packets to an address of the ServiceCIDRs that no frontend matches. `refused`: an unknown port of a cluster IP is rejected,
   * an unallocated address is dropped, as by kube-proxy's nftables mode. `passed`: routed on, as by its iptables mode.
   */
  readonly unmatchedClusterIps: 'refused' | 'passed';
  /** Whether `loadBalancerSourceRanges` decide before a Service without endpoints rejects. kube-proxy's iptables mode has no chain for it. */
  readonly sourceRangesWithoutEndpoints: 'checked' | 'unchecked';
  /**
   * Packets that external and load-balancer IPs refuse when no endpoint is usable. `arriving`: packets of this node itself are
   * routed on, since kube-proxy's iptables mode has no jump from OUTPUT to the chain that refuses.
   */
  readonly externalIpsRefuse: 'everyone' | 'arriving';
  /**
   * Place of the translation. `sockets`: a socket of this node connects to the endpoint, so its packets are not masqueraded; SCTP
   * and frontends with source ranges excepted (`isSentBySocket`). A refused socket gets an error instead of silence.
   */
  readonly translation: 'packets' | 'sockets';
  /** Whether TCP segments that connection tracking classifies as invalid are dropped (kubernetes/kubernetes#74839), unless it is liberal. */
  readonly invalidSegments: 'dropped' | 'passed';
  /** Where NodePorts answer when `nodePortAddresses` is unset: the Node's primary addresses (KEP-3866), or all. */
  readonly defaultNodePortAddresses: 'primary' | 'all';
  /** Implementation of NodePorts on loopback: the kernel's rules on 127.0.0.0/8 (`localhostNodePorts`), or the agent's proxy (KEP-6032). */
  readonly loopbackNodePorts: 'kernel' | 'proxy';
  /**
   * Whether an unset `minSyncPeriod` is kube-proxy's second between two applies (iptables mode), or the backend's own floor, some
   * milliseconds.
   */
  readonly defaultMinSyncPeriod: 'kubeProxy' | 'own';
  /**
   * Largest change of which packets see all or nothing. `transaction`: a whole apply. `table`: an apply's share of one table. `store`: one entry
   * of a map or file. Where it is less than a transaction, parts of a refused Service may stand in another table or store.
   */
  readonly atomicity: 'transaction' | 'table' | 'store';
  /** Metrics on `/metrics` beside those of all dataplanes. Other sets are absent, as in kube-proxy. */
  readonly metricSets: readonly MetricSet[];
}

/**
 * Metrics that only some dataplanes serve. `loopbackProxy`: listeners of the agent's proxy for NodePorts on loopback. `rules`:
 * rules by table, refused restores, packets counted by rules. `transactions`: refused transactions. `maps`: how full maps are.
 */
export type MetricSet = 'loopbackProxy' | 'rules' | 'transactions' | 'maps';
