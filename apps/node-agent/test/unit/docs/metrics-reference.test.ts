import { expect, test } from 'vitest';
import { metricsReference } from './metrics-reference.ts';

test.each([
  [
    'a metric of kube-proxy, with what differs',
    /\| `kubeproxy_sync_proxy_rules_service_changes_total` \| counter \| {2}\| .* \*\*Differs:\*\* Once/,
  ],
  [
    'a histogram with its buckets',
    /\| `kubeproxy_network_programming_duration_seconds` \| histogram \(networkProgramming\) \|/,
  ],
  ['a metric of Switchyard', /\| `switchyard_drift_total` \| counter \| `ip_family`, `kind` \|/],
  ['what is refused, with the reason', /\| `go_\*` \| no Go runtime/],
  ['the mode of what only one has', /\| `kubeproxy_sync_proxy_rules_iptables_last` .* In the iptables mode only\./],
  [
    'the bounds of every set',
    /\| networkProgramming \| 0, 0.25, 0.5, 1, 2, \.\.\. 60, 65, 70, \.\.\. 120, 150, 180, \.\.\. 300 \|/,
  ],
  [
    'the known values of a label',
    /\| `switchyard_config_reloads_total` \| `result` \| `applied`, `rejected`, `restart` \|/,
  ],
])('it has %s', (_, expected) => {
  expect(metricsReference()).toMatch(expected);
});
