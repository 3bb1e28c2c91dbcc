import type { DataplaneTraits } from '@switchyard/core';

/** Duties of the proxy that reads the file: the answers of kube-proxy's nftables mode, changed all at once. */
export const jsonFileTraits: DataplaneTraits<'json-file'> = {
  name: 'json-file',
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
  metricSets: ['loopbackProxy'],
};
