import { HostError, systemClock } from '@switchyard/core';
import { RecordingBackend } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { ProxyMode } from '../config/proxy-mode.ts';
import { createMetricsPage } from './metrics-page.ts';
import { joinPieces } from './testing/metrics-pages.ts';
import { ruleMetrics, type RuleMetricsOptions } from './agent-metrics.ts';

const { signal } = new AbortController();
const ruleCounts = () => [
  { table: 'nat', total: 12, last: 3 },
  { table: 'filter', total: 4, last: 0 },
  { table: 'mangle', total: 0, last: 1 }, // kube-proxy exports none of this table
];

async function page(mode: ProxyMode, packetCounts: RuleMetricsOptions['packetCounts']): Promise<readonly string[]> {
  const metricsPage = createMetricsPage({ mode, ipFamilies: ['IPv4'], clock: systemClock });
  const backend = new RecordingBackend({ observers: { ruleCounts } });
  metricsPage.addCollector(ruleMetrics({ backends: [backend], packetCounts }));
  const text = await joinPieces(await metricsPage.metricsText(undefined, signal));
  return text.split('\n').filter((line) => /^kubeproxy_(?:\w+_)?(?:ip|nf)tables/.test(line));
}

test('the iptables mode exports its rules, and the packets of rules with a counter', async () => {
  const counts = new Map([['ct_state_invalid_dropped_pkts', { packets: 7 }]]);
  expect(await page('iptables', async () => counts)).toEqual([
    'kubeproxy_iptables_ct_state_invalid_dropped_packets_total 7',
    'kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv4",table="nat"} 3',
    'kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv4",table="filter"} 0',
    'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total{ip_family="IPv4"} 0',
    'kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"} 0',
    'kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="nat"} 12',
    'kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="filter"} 4',
  ]);
});

test('a kernel without netfilter accounting costs only its two counters', async () => {
  const lines = await page('iptables', () => Promise.reject(new HostError('native.nfacct', 'not in this kernel')));
  expect(lines.filter((line) => line.includes('packets_total'))).toEqual([]);
  expect(lines.length).toBeGreaterThan(4);
});

test('the nftables mode has none of them, but its own', async () => {
  const lines = await page('nftables', async () => new Map());
  expect(lines.map((line) => line.replace(/[{ ].*/, ''))).toEqual([
    'kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total',
    'kubeproxy_nftables_localhost_nodeport_listeners',
    'kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total',
    'kubeproxy_sync_proxy_rules_nftables_sync_failures_total',
  ]);
});
