/** A fault of a Service proxy that its users published, and a proxy with the same one. */
export interface PublishedFault {
  /** As `cilium/cilium#37613`. */
  readonly issue: string;
  /** The wrong behaviour, in words. */
  readonly fault: string;
  /**
   * A mutant, whose row in docs/reference/mutants.md says which check notices it; a sequence with what a scripted proxy does wrong; or the
   * case that fails with the proxy itself.
   */
  readonly foundBy:
    | { readonly mutant: string }
    | { readonly sequence: string; readonly wrong: string }
    | { readonly proxy: string; readonly case: string };
}

export const publishedFaults: readonly PublishedFault[] = [
  {
    issue: 'cilium/cilium#37613',
    fault:
      'with externalTrafficPolicy Local nothing reaches a pod that serves while it terminates, although no other is there',
    foundBy: { mutant: 'core/no-terminating-fallback' },
  },
  {
    issue: 'projectcalico/calico#12880',
    fault: 'connections to a pod that ends are refused for its whole preStop',
    foundBy: { sequence: 'terminating-together', wrong: 'never falls back' },
  },
  {
    issue: 'cilium/cilium#34991',
    fault: 'pods that end get traffic beside ready ones',
    foundBy: { sequence: 'terminating-one-by-one', wrong: 'uses pods that end beside ready ones' },
  },
  {
    issue: 'cilium/cilium#21061',
    fault: 'the health check of a node answers 200 while only terminating pods are there',
    foundBy: { mutant: 'core/health-counts-terminating' },
  },
  {
    issue: 'cilium/cilium#45252',
    fault: 'a pod does not reach a load-balancer IP with externalTrafficPolicy Local whose endpoints are elsewhere',
    foundBy: { mutant: 'core/short-circuit-of-pods' },
  },
  {
    issue: 'kubernetes/kubernetes#139628',
    fault: 'a UDP client goes on with the last endpoint of a Service that has none any more',
    foundBy: { proxy: 'kube-proxy v1.36.2', case: 'sequence/udp-endpoint-replacement' },
  },
  {
    issue: 'kubernetes/kubernetes#141371',
    fault: 'a UDP client goes on with the endpoint of a Service that was deleted',
    foundBy: { proxy: 'kube-proxy v1.36.2', case: 'scenario/udp-deleted-service' },
  },
  {
    issue: 'kubernetes/kubernetes#75360',
    fault: 'a restart of the proxy breaks flows, because it writes all rules anew',
    foundBy: { mutant: 'nftables/restart-flushes' },
  },
  {
    issue: 'cilium/cilium#41022',
    fault: 'zone hints are followed although an endpoint has none, or none is of the own zone',
    foundBy: { mutant: 'core/missing-hint-ignored' },
  },
  {
    issue: 'cilium/cilium#40883',
    fault: 'zone hints are not followed for cluster IPs',
    foundBy: { mutant: 'core/zone-hints-ignored' },
  },
  {
    issue: 'ovn-kubernetes/ovn-kubernetes#6888',
    fault: 'zone hints are not followed at all',
    foundBy: { mutant: 'core/zone-hints-ignored' },
  },
];
