import type { DataplaneTraits } from '../model/forwarding/dataplane-traits.ts';

/** A dataplane of tests that translates and refuses every packet. */
export const strictTraits: DataplaneTraits = {
  name: 'strict',
  kubeProxyMode: 'strict',
  unmatchedClusterIps: 'refused',
  sourceRangesWithoutEndpoints: 'checked',
  externalIpsRefuse: 'everyone',
  translation: 'packets',
  invalidSegments: 'passed',
  defaultNodePortAddresses: 'primary',
  loopbackNodePorts: 'proxy',
  defaultMinSyncPeriod: 'own',
  atomicity: 'transaction',
  metricSets: [],
};

/** One that lets pass what a dataplane may let pass. */
export const lenientTraits: DataplaneTraits = {
  ...strictTraits,
  name: 'lenient',
  unmatchedClusterIps: 'passed',
  sourceRangesWithoutEndpoints: 'unchecked',
  externalIpsRefuse: 'arriving',
};

/** One that translates sockets. */
export const socketTraits: DataplaneTraits = { ...strictTraits, name: 'sockets', translation: 'sockets' };

/** All of them. */
export const testTraits: readonly DataplaneTraits[] = [strictTraits, lenientTraits, socketTraits];
