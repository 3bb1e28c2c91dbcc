import type { DataplaneTraits } from '@switchyard/core';

/** Every packet is translated by rules, changed table by table; the answers of kube-proxy's iptables mode. */
export const iptablesTraits: DataplaneTraits<'iptables'> = {
  name: 'iptables',
  kubeProxyMode: 'iptables',
  unmatchedClusterIps: 'passed',
  sourceRangesWithoutEndpoints: 'unchecked',
  externalIpsRefuse: 'arriving',
  translation: 'packets',
  invalidSegments: 'dropped',
  defaultNodePortAddresses: 'all',
  loopbackNodePorts: 'kernel',
  defaultMinSyncPeriod: 'kubeProxy',
  atomicity: 'table',
  metricSets: ['rules'],
};
