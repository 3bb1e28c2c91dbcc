/** Causes of a lost packet, with what to do about each. Codes are stable; texts may change. */
export const causes = {
  noEndpoints: 'make a pod of the Service ready: see its EndpointSlices and the readiness probes of its pods',
  noLocalEndpoint: 'run a pod of the Service on this node, send to another node, or set the traffic policy to Cluster',
  notYetApplied: 'wait until the node has applied the Service: see the lag of its proxy',
  sourceNotAllowed: "add the client's network to spec.loadBalancerSourceRanges of the Service",
  unknownPort: 'use a port of spec.ports of the Service, or add this one',
  unallocatedAddress: 'look up the cluster IP again: the Service of this address was deleted',
  addressGone:
    'use an address that the node has: see its status, and those who have the former address, such as a load balancer',
  otherRule:
    'find the rule with `nft list ruleset` or `iptables-save -c`: its counter grows; it may be a network policy',
  invalidSegment:
    'connection tracking lost the connection: see that both directions pass this node, and nf_conntrack_tcp_be_liberal',
  conntrackFull: 'raise net.netfilter.nf_conntrack_max (conntrack.maxPerCore), or find who opens so many flows',
  conntrackClash:
    'the ports from one address to one endpoint are used up, or two new flows raced for one: see insert_failed in `conntrack -S`; add endpoints, or keep connections open',
  reversePath: 'set net.ipv4.conf.*.rp_filter to 2 (loose) on the interface, or mend the route back to the sender',
  noRoute: 'add a route to the address on this node: see `ip route get`, and the network plugin',
  neighbour:
    'the next hop does not answer ARP or neighbour discovery: see that the pod or node runs, and its interface',
  neighbourTableFull:
    'raise net.ipv4.neigh.default.gc_thresh3 (IPv6: net.ipv6): it limits the learnt neighbours of the node and all its pods together',
  packetTooBig: "lower the sender's MTU, or let ICMP `fragmentation needed` through to the sender",
  noListener: 'start the application, or correct targetPort: nothing listens on this port of the pod',
  applicationGone:
    'the application ended while requests still came: let it serve some seconds after SIGTERM, and finish open requests',
  acceptQueueFull: 'accept connections faster, raise the backlog of listen() and net.core.somaxconn, or add pods',
  receiveBufferFull: 'read datagrams faster, raise SO_RCVBUF and net.core.rmem_max, or add pods',
  hairpinOff:
    'let the bridge send packets back out of the port they came from: hairpin mode of the network plugin, or promiscuous mode',
  answerNotTranslated:
    'the answer takes a way around the node that translated the request: let that node masquerade the traffic, or use policy Local',
  staleFlow: 'connection tracking still leads this flow to a deleted endpoint: delete it with `conntrack -D`',
  staleRule: "the proxy's rules are behind the API: see its log, its last sync and its watch",
  notAccepted:
    'the kernel takes no such source or destination from this interface: see addresses and routes of the node',
  program: 'a BPF program, traffic control or a security module dropped it: see `bpftool net`, `tc -s qdisc`',
  overload: 'the node has no buffers or CPU for packets: see `nstat`, net.core.netdev_max_backlog and its load',
  kernel: 'see the reason in include/net/dropreason-core.h of the kernel',
} as const;

/** Code of a cause. */
export type CauseCode = keyof typeof causes;

/** Drop reasons of the kernel that mean the same cause for every packet. */
export const causesByReason: Readonly<Record<string, CauseCode>> = {
  IP_RPFILTER: 'reversePath',
  IP_INNOROUTES: 'noRoute',
  IP_OUTNOROUTES: 'noRoute',
  NEIGH_CREATEFAIL: 'neighbourTableFull',
  NEIGH_FAILED: 'neighbour',
  NEIGH_QUEUEFULL: 'neighbour',
  NEIGH_DEAD: 'neighbour',
  NEIGH_HH_FILLFAIL: 'neighbour',
  PKT_TOO_BIG: 'packetTooBig',
  TCP_LISTEN_OVERFLOW: 'acceptQueueFull',
  SOCKET_RCVBUFF: 'receiveBufferFull',
  SOCKET_BACKLOG: 'overload',
  PROTO_MEM: 'overload',
  CPU_BACKLOG: 'overload',
  FULL_RING: 'overload',
  NOMEM: 'overload',
  IP_INADDRERRORS: 'notAccepted',
  IP_LOCAL_SOURCE: 'notAccepted',
  IP_INVALID_SOURCE: 'notAccepted',
  IP_LOCALNET: 'notAccepted',
  IP_INVALID_DEST: 'notAccepted',
  BPF_CGROUP_EGRESS: 'program',
  TC_EGRESS: 'program',
  TC_INGRESS: 'program',
  XDP: 'program',
  SECURITY_HOOK: 'program',
  SOCKET_FILTER: 'program',
  QDISC_DROP: 'program',
  QDISC_OVERLIMIT: 'program',
  QDISC_CONGESTED: 'program',
};

/**
 * Reasons with which the kernel frees packets of connections that lose nothing: copies for other hosts, repeated or late TCP
 * segments, what remains in a closed socket.
 */
export const harmlessReasons: RegExp =
  /^(?:OTHERHOST|UNIX_|SOCKET_CLOSE|TCP_(?!LISTEN_OVERFLOW|CSUM|ABORT_ON_DATA)|QUEUE_PURGE|DUP_FRAG)/;
