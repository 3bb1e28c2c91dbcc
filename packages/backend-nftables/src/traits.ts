import type { DataplaneTraits } from '@switchyard/core';

/** Every packet is translated by rules, changed in one transaction; the answers of kube-proxy's nftables mode. */
export const nftablesTraits: DataplaneTraits<'nftables'> = {
  name: 'nftables',
  kubeProxyMode: 'nftables',
  unmatchedClusterIps: 'refused',
  sourceRangesWithoutEndpoints: 'checked',
  externalIpsRefuse: 'everyone',
  translation: 'packets',
  invalidSegments: 'passed',
  defaultNodePortAddresses: 'primary',
  loopbackNodePorts: 'proxy',
  defaultMinSyncPeriod: 'own',
  atomicity: 'transaction',
  metricSets: ['loopbackProxy', 'transactions'],
};
