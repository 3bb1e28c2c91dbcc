/** A feature of a Service proxy, and what checks it. */
export type CoveredFeature = {
  /** Its number in the table of Service features (A1) of the kube-proxy facts. */
  readonly row: number;
  readonly feature: string;
} & (
  | {
      readonly status: 'covered';
      /** Ids or globs as `--case` takes them; each matches at least one case. */
      readonly cases: readonly string[];
    }
  | {
      readonly status: 'untold';
      /** Reason why packets cannot show it. */
      readonly because: string;
    }
);

function covered(row: number, feature: string, ...cases: readonly string[]): CoveredFeature {
  return { row, feature, status: 'covered', cases };
}

function untold(row: number, feature: string, because: string): CoveredFeature {
  return { row, feature, status: 'untold', because };
}

/** Service features that a proxy has to implement, row by row. */
export const coverage: readonly CoveredFeature[] = [
  covered(
    1,
    'ClusterIP over TCP and UDP',
    'scenario/cluster-ip/*',
    'scenario/cluster-ip-moves/*',
    'matrix/clusterIP/**',
  ),
  covered(2, 'SCTP Services', 'scenario/sctp/*', 'scenario/one-port-three-protocols/*', 'matrix/*/*/*/*'),
  covered(3, 'ports matched by name and protocol', 'scenario/named-ports/*', 'scenario/odd-slices/*'),
  covered(4, 'targetPort resolved per slice', 'scenario/port-per-slice/*', 'scenario/target-port-changes/*'),
  covered(5, 'headless Services left alone', 'scenario/not-proxied/*'),
  covered(6, 'slices of headless Services not read', 'scenario/headless-slices/*'),
  covered(7, 'Services of another proxy left alone', 'scenario/not-proxied/*'),
  covered(8, 'ExternalName never proxied', 'scenario/not-proxied/*'),
  covered(9, 'NodePort', 'scenario/node-port/*', 'scenario/node-port-moves/*', 'matrix/nodePort/**'),
  covered(
    10,
    'NodePort addresses: CIDRs, primary, default',
    'scenario/node-port-addresses*/*',
    'scenario/node-port-primary/*',
    'scenario/node-port-default-addresses/*',
    'scenario/dual-stack-node-port-addresses/*',
    'sequence/node-port-address-change/*',
  ),
  covered(11, 'NodePort on loopback', 'scenario/node-port-loopback*/*'),
  covered(
    12,
    'externalIPs',
    'scenario/external-ip/*',
    'scenario/external-ip-edits/*',
    'scenario/shared-external-ip/*',
    'scenario/vip-is-node-address/*',
    'matrix/externalIP/**',
  ),
  covered(
    13,
    'load-balancer IPs of the status',
    'scenario/load-balancer-cluster/*',
    'scenario/load-balancer-status/*',
    'matrix/loadBalancerIP/**',
  ),
  covered(14, 'ipMode (KEP-1860)', 'scenario/load-balancer-ip-mode/*'),
  covered(15, 'loadBalancerSourceRanges', 'scenario/source-ranges*/*', 'sequence/source-range-edits/*'),
  covered(
    16,
    'internalTrafficPolicy Local',
    'scenario/itp-*/*',
    'scenario/both-policies-local/*',
    'sequence/itp-toggle-under-load/*',
    'matrix/clusterIP/Local/**',
  ),
  covered(
    17,
    'externalTrafficPolicy Local keeps the source address',
    'scenario/etp-*/*',
    'sequence/etp-toggle-under-load/*',
    'matrix/*/Local/**',
  ),
  covered(
    18,
    'the short circuit of pods and the node',
    'scenario/etp-local/*',
    'scenario/external-ip/*',
    'scenario/no-pod-detector/*',
    'matrix/*/Local/ready-remote-only/*',
  ),
  covered(
    19,
    'KEP-1669, policy Cluster',
    'scenario/terminating-fallback-cluster/*',
    'matrix/*/Cluster/*terminating*/*',
    'matrix/ending-orders/*',
    'sequence/terminating-*/*',
    'rollout/*/Cluster/*',
  ),
  covered(
    20,
    'KEP-1669, policy Local',
    'scenario/terminating-fallback-local/*',
    'scenario/local-fallback-beside-ready-remote/*',
    'matrix/*/Local/*terminating*/*',
    'matrix/ending-orders/*',
    'rollout/*/Local/*',
  ),
  covered(
    21,
    'terminating endpoints fail the health check',
    'scenario/health-check-transitions/*',
    'matrix/loadBalancerIP/Local/*terminating*/*',
    'matrix/ending-orders/*',
  ),
  covered(22, 'established TCP flows survive', 'sequence/hold-open/*'),
  covered(23, 'publishNotReadyAddresses, by the ready condition', 'scenario/publish-not-ready/*'),
  covered(24, 'zone hints (KEP-2433, KEP-4444)', 'scenario/topology-zone/*', 'scenario/topology-terminating/*'),
  covered(25, 'node hints (KEP-3015)', 'scenario/topology-node/*'),
  covered(
    26,
    'session affinity ClientIP and its timeout',
    'scenario/session-affinity*/*',
    'scenario/affinity-both-policies*/*',
    'sequence/affinity-timeouts/*',
  ),
  covered(
    27,
    'no endpoint: refused',
    'matrix/*/*/none/*',
    'matrix/*/*/not-ready/*',
    'scenario/etp-local-no-endpoints/*',
  ),
  covered(28, 'another port of a cluster IP', 'scenario/unknown-port*/*'),
  covered(29, 'a cluster IP of no Service', 'scenario/unallocated-cluster-ip/*'),
  covered(30, 'hairpin', 'scenario/hairpin/*'),
  covered(
    31,
    'masquerade of what is no pod, masqueradeAll',
    'scenario/off-cluster-cluster-ip/*',
    'scenario/masquerade-all/*',
    'matrix/clusterIP/**',
  ),
  covered(32, 'stale UDP flows', 'scenario/udp-stale-flows/*', 'sequence/udp-endpoint-replacement/*'),
  covered(33, 'INVALID packets dropped (iptables mode)', 'sequence/stray-segments/*'),
  covered(
    34,
    'dual stack',
    'scenario/dual-stack-*/*',
    'scenario/source-ranges-other-family/*',
    'sequence/dual-stack/*',
  ),
  covered(35, 'allocateLoadBalancerNodePorts false', 'scenario/load-balancer-without-node-port/*'),
  untold(36, 'loadBalancerClass, appProtocol', 'neither has a meaning for nodes: packets do not depend on them'),
  covered(
    37,
    'healthCheckNodePort',
    'scenario/health-check-*/*',
    'sequence/health-node-ports/*',
    'matrix/loadBalancerIP/Local/**',
  ),
  untold(38, 'direct server return', 'no mode of kube-proxy has it, and the API has no field for it'),
  untold(
    39,
    'consistent hashing',
    'kube-proxy has it in ipvs mode alone; which of several endpoints answers is left to chance',
  ),
  untold(40, 'hostPort', 'a plug-in of the container network does it, not the Service proxy'),
  untold(41, 'an algorithm for each Service', 'kube-proxy has none, and the API has no field for it'),
];
