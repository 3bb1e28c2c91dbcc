import type { DataplaneTraits } from '@switchyard/core';

/** Sockets of this node go to the endpoint themselves; everything else gets the answers of the nftables mode. */
export const ebpfTraits: DataplaneTraits<'ebpf'> = {
  name: 'ebpf',
  kubeProxyMode: 'nftables',
  unmatchedClusterIps: 'refused',
  sourceRangesWithoutEndpoints: 'checked',
  externalIpsRefuse: 'everyone',
  translation: 'sockets',
  invalidSegments: 'passed',
  defaultNodePortAddresses: 'primary',
  loopbackNodePorts: 'proxy',
  defaultMinSyncPeriod: 'own',
  atomicity: 'store',
  metricSets: ['loopbackProxy', 'maps'],
};
