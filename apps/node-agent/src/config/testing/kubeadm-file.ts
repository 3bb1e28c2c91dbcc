/** Lines of the file, each with the minor version of Kubernetes that first writes them. */
const parts: readonly (readonly [since: number, lines: string])[] = [
  [
    26,
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1
bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  acceptContentTypes: ""
  burst: 0
  contentType: ""
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
  qps: 0
clusterCIDR: 10.244.0.0/16
configSyncPeriod: 0s
conntrack:
  maxPerCore: null
  min: null
`,
  ],
  [29, '  tcpBeLiberal: false\n'],
  [26, '  tcpCloseWaitTimeout: null\n  tcpEstablishedTimeout: null\n'],
  [29, '  udpStreamTimeout: 0s\n  udpTimeout: 0s\n'],
  [
    26,
    `detectLocal:
  bridgeInterface: ""
  interfaceNamePrefix: ""
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: ""
iptables:
  localhostNodePorts: null
  masqueradeAll: false
  masqueradeBit: null
  minSyncPeriod: 0s
  syncPeriod: 0s
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  strictARP: false
  syncPeriod: 0s
  tcpFinTimeout: 0s
  tcpTimeout: 0s
  udpTimeout: 0s
kind: KubeProxyConfiguration
`,
  ],
  [28, 'logging:\n  flushFrequency: 0\n  options:\n    json:\n      infoBufferSize: "0"\n'],
  [30, '    text:\n      infoBufferSize: "0"\n'],
  [28, '  verbosity: 0\n'],
  [26, 'metricsBindAddress: ""\nmode: ""\n'],
  [29, 'nftables:\n  masqueradeAll: false\n  masqueradeBit: null\n  minSyncPeriod: 0s\n  syncPeriod: 0s\n'],
  [
    26,
    `nodePortAddresses: null
oomScoreAdj: null
portRange: ""
showHiddenMetricsForVersion: ""
winkernel:
  enableDSR: false
  forwardHealthCheckVip: false
  networkName: ""
  rootHnsEndpointName: ""
  sourceVip: ""
`,
  ],
];

/** The releases whose file is known. */
export const kubeadmMinors: readonly number[] = Array.from({ length: 13 }, (_, index) => 26 + index);

/**
 * The file that kubeadm 1.`minor` puts into the ConfigMap kube-proxy of a new cluster: nulls, empty texts and zeros that mean
 * nothing.
 *
 * kubeadm writes every field of its release: config/v1alpha1/types.go of kubernetes/kube-proxy and logs/api/v1/types.go of
 * kubernetes/component-base, 1.26.0 to 1.36.0 and v0.37.0-beta.0. From 1.37 on it sets the mode (kubernetes/kubernetes#139777).
 * No field of 1.38 is known that 1.37 lacks.
 */
export function kubeadmFileOf(minor: number): string {
  const text = parts
    .filter(([since]) => since <= minor)
    .map(([, lines]) => lines)
    .join('');
  return minor < 37 ? text : text.replace('mode: ""', 'mode: iptables');
}

/** The file of kubeadm 1.36. */
export const kubeadmFile: string = kubeadmFileOf(36);
