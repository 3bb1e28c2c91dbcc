import { expect, test } from 'vitest';
import { kubeProxySchema } from './kube-proxy-fields.ts';

/**
 * The fields of kube-proxy's config/v1alpha1/types.go: the same in v0.36.0, v0.36.3 and v0.37.0-beta.0 of
 * github.com/kubernetes/kube-proxy. `''` are the fields outside of any stanza.
 */
const upstream = {
  '':
    'featureGates hostnameOverride bindAddress healthzBindAddress metricsBindAddress bindAddressHardFail ' +
    'enableProfiling showHiddenMetricsForVersion mode detectLocalMode clusterCIDR nodePortAddresses oomScoreAdj ' +
    'configSyncPeriod portRange windowsRunAsService',
  iptables: 'masqueradeBit masqueradeAll localhostNodePorts syncPeriod minSyncPeriod',
  ipvs: 'syncPeriod minSyncPeriod scheduler excludeCIDRs strictARP tcpTimeout tcpFinTimeout udpTimeout',
  nftables: 'masqueradeBit masqueradeAll syncPeriod minSyncPeriod',
  winkernel: 'networkName sourceVip enableDSR rootHnsEndpointName forwardHealthCheckVip',
  detectLocal: 'bridgeInterface interfaceNamePrefix',
  conntrack: 'maxPerCore min tcpEstablishedTimeout tcpCloseWaitTimeout tcpBeLiberal udpTimeout udpStreamTimeout',
};

/** Their fields are declared in component-base, not in kube-proxy. */
const declaredElsewhere = /^(clientConnection|logging)\./;

test('every field of kube-proxy 1.36 and 1.37 has a row, and no row is without a field of kube-proxy', () => {
  const theirs = Object.entries(upstream).flatMap(([stanza, names]) =>
    names.split(' ').map((name) => (stanza === '' ? name : `${stanza}.${name}`)),
  );
  const ours = kubeProxySchema.fields.map(({ path }) => path).filter((path) => !declaredElsewhere.test(path));
  expect(ours.toSorted()).toEqual(theirs.toSorted());
});
