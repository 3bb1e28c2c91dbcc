import { systemClock } from '@switchyard/core';
import { RecordingBackend } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { ProxyMode } from '../config/proxy-mode.ts';
import { mapMetrics } from './agent-metrics.ts';
import { createMetricsPage } from './metrics-page.ts';
import { joinPieces } from './testing/metrics-pages.ts';

const { signal } = new AbortController();
const mapFills = () => [
  { map: 'services', entries: 12, capacity: 4096 },
  { map: 'frontends', entries: 30, capacity: 65_536 },
];

async function page(mode: ProxyMode): Promise<readonly string[]> {
  const metricsPage = createMetricsPage({ mode, ipFamilies: ['IPv4'], clock: systemClock });
  metricsPage.addCollector(mapMetrics([new RecordingBackend({ observers: { mapFills } }), new RecordingBackend()]));
  const text = await joinPieces(await metricsPage.metricsText(undefined, signal));
  return text.split('\n').filter((line) => line.startsWith('switchyard_ebpf'));
}

test('the ebpf mode exports how full its maps are', async () => {
  expect(await page('ebpf')).toEqual([
    'switchyard_ebpf_map_capacity{ip_family="IPv4",map="services"} 4096',
    'switchyard_ebpf_map_capacity{ip_family="IPv4",map="frontends"} 65536',
    'switchyard_ebpf_map_entries{ip_family="IPv4",map="services"} 12',
    'switchyard_ebpf_map_entries{ip_family="IPv4",map="frontends"} 30',
  ]);
});
