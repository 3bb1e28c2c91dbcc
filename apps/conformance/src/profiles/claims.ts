// Statements about Services that cases rest on. `source`: the field, KEP or program that makes it. `from`: `api` if the Kubernetes API or a
// KEP says it to every implementation; `kubeProxy` if kube-proxy does it, or its configuration has it, and the API leaves it open.

/** Every claim, by its name. Sources are those of Kubernetes 1.36. */
export const claims = {
  clusterIp: {
    source: 'API Service spec.type ClusterIP',
    sentence: 'a cluster-internal address balances over the endpoints of the Service',
    from: 'api',
  },
  ports: {
    source: 'API Service spec.ports, API EndpointSlice ports',
    sentence:
      'each port of a Service is a protocol and a number of its own; slices give its target by the name of the port',
    from: 'api',
  },
  protocols: { source: 'API Service spec.ports[].protocol', sentence: 'TCP, UDP and SCTP are supported', from: 'api' },
  mutable: {
    source: 'API Service spec.type, ports, externalIPs and policies',
    sentence: 'they can be changed, and the Service then is what they say',
    from: 'api',
  },
  slices: {
    source: 'API EndpointSlice endpoints',
    sentence: 'the endpoints of a Service are those of all its slices together, by the first address and its family',
    from: 'api',
  },
  ready: {
    source: 'API EndpointSlice conditions.ready',
    sentence: 'an endpoint that is ready gets traffic, one that is not gets none; unset counts as true',
    from: 'api',
  },
  refused: {
    source: 'Kubernetes e2e test "should be rejected when no endpoints exist"',
    sentence: 'a Service without a usable endpoint refuses connections, so that clients need not wait',
    from: 'api',
  },
  notProxied: {
    source:
      'API labels service.kubernetes.io/service-proxy-name and headless, Service type ExternalName, clusterIP None',
    sentence: 'such Services and slices are not the business of the default Service proxy',
    from: 'api',
  },
  nodePort: {
    source: 'API Service spec.ports[].nodePort',
    sentence: 'a port on every node leads to the endpoints that the cluster IP has',
    from: 'api',
  },
  externalIps: {
    source: 'API Service spec.externalIPs',
    sentence: 'nodes accept traffic for these addresses, too',
    from: 'api',
  },
  names: { source: 'KEP-5311', sentence: 'the name of a Service may begin with a digit', from: 'api' },
  dualStack: {
    source: 'KEP-563',
    sentence: 'a Service can have an address in each IP family, with the endpoints of that family',
    from: 'api',
  },
  hairpin: {
    source: 'Kubernetes e2e test "should function for pod-Service(hairpin)"',
    sentence: 'a pod reaches itself through its Service',
    from: 'api',
  },
  externalCluster: {
    source: 'API Service spec.externalTrafficPolicy Cluster',
    sentence: 'external traffic goes to all endpoints',
    from: 'api',
  },
  externalLocal: {
    source: 'API Service spec.externalTrafficPolicy Local',
    sentence:
      'external traffic goes to endpoints of the receiving node only, keeps its source address, and is dropped without one',
    from: 'api',
  },
  shortCircuit: {
    source: 'API Service spec.externalTrafficPolicy',
    sentence: 'what the cluster itself sends to an external IP or a load-balancer IP always has "Cluster" semantics',
    from: 'api',
  },
  internalLocal: {
    source: 'API Service spec.internalTrafficPolicy, KEP-2086',
    sentence:
      'Local keeps traffic to the cluster IP on the node and drops it without an endpoint there; external traffic is untouched',
    from: 'api',
  },
  loadBalancer: {
    source: 'API Service type LoadBalancer, status.loadBalancer',
    sentence: 'traffic to the addresses of the status reaches the endpoints',
    from: 'api',
  },
  sourceRanges: {
    source: 'API Service spec.loadBalancerSourceRanges',
    sentence: 'only these clients get through the load-balancer IP; an implementation may leave it out',
    from: 'api',
  },
  ipMode: {
    source: 'API status.loadBalancer.ingress[].ipMode, KEP-1860',
    sentence: 'an address with the mode Proxy is not captured on nodes',
    from: 'api',
  },
  healthCheck: {
    source: 'API Service spec.healthCheckNodePort',
    sentence: 'load balancers learn here whether the node has endpoints of the Service',
    from: 'api',
  },
  terminating: {
    source: 'KEP-1669',
    sentence:
      'without a ready endpoint those that serve while they terminate get the traffic, for the cluster and for the node; they fail the health check',
    from: 'api',
  },
  publishNotReady: {
    source: 'API Service spec.publishNotReadyAddresses',
    sentence: 'all endpoints count as ready, by their condition',
    from: 'api',
  },
  surge: {
    source: 'KEP-1591',
    sentence: "a DaemonSet's new pod can start before the old one ends, so that one is always ready",
    from: 'api',
  },
  zoneHints: {
    source: 'API EndpointSlice hints.forZones, KEP-2433, KEP-4444',
    sentence: 'endpoints of the own zone are preferred; implementations need not follow',
    from: 'api',
  },
  nodeHints: {
    source: 'API EndpointSlice hints.forNodes, KEP-3015',
    sentence: 'endpoints of the own node are preferred; implementations need not follow',
    from: 'api',
  },
  affinity: {
    source: 'API Service spec.sessionAffinity ClientIP',
    sentence: 'a client address stays at its endpoint, until the timeout has passed since its last connection',
    from: 'api',
  },
  changesTakeEffect: {
    source: 'API EndpointSlice endpoints',
    sentence: 'a change of endpoints loses no connection to those that stay, and traffic to those that went ends',
    from: 'api',
  },
  udpFlows: {
    source: 'API EndpointSlice endpoints',
    sentence: 'a UDP client that keeps its port follows the endpoints, as another client does',
    from: 'api',
  },
  restart: {
    source: 'kube-proxy, stop and start',
    sentence: 'rules stay while the proxy does not run, and its start loses no connection and makes up for all changes',
    from: 'kubeProxy',
  },
  established: {
    source: 'kube-proxy',
    sentence: 'established connections go on when their Service changes or goes',
    from: 'kubeProxy',
  },
  configuration: {
    source: 'KubeProxyConfiguration',
    sentence: 'nodePortAddresses, clusterCIDR, detectLocal, masqueradeAll and localhostNodePorts do what they say',
    from: 'kubeProxy',
  },
  modesDiffer: {
    source: 'kube-proxy, iptables and nftables mode',
    sentence: 'the modes answer differently, and the API does not say which one is right',
    from: 'kubeProxy',
  },
  detail: { source: 'kube-proxy', sentence: 'it does so; the API leaves it open', from: 'kubeProxy' },
  gate: { source: 'a feature gate of Switchyard', sentence: 'not of Kubernetes yet', from: 'kubeProxy' },
} as const;

export type ClaimName = keyof typeof claims;
