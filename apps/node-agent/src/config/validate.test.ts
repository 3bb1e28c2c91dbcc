import { expect, test } from 'vitest';
import { loadConfig } from '../config.ts';
import { ConfigFolder } from './testing/config-folder.ts';

test.each([
  'ipvs: { excludeCIDRs: [all], tcpTimeout: -1s, minSyncPeriod: 1m }',
  'iptables: { syncPeriod: 1s, minSyncPeriod: 5s }',
  'iptables: { syncPeriod: -1s }',
  'detectLocalMode: NodeCIDR\nclusterCIDR: 10.0.0.0/16,10.1.0.0/16',
])('no fault where kube-proxy does not look in the nftables mode: %s', async (text) => {
  await using folder = await ConfigFolder.create();
  const head = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n';
  const file = await folder.write('config.conf', `${head}${text}\n`);
  expect((await loadConfig([`--config=${file}`], {})).kind).toBe('run');
});
