import { HostError, millis, serviceKey, type ServicePortKey, servicePortKey, systemClock } from '@switchyard/core';
import { type ServiceCounters } from '@switchyard/core/engine';
import { ManualClock, MemoryLogger, RecordingBackend } from '@switchyard/core/testing';
import { collectedFamily, watchProcess } from '@switchyard/host';
import { describe, expect, test } from 'vitest';
import { addMetrics, type MeasuredAgent } from './agent-metrics.ts';
import { createMetricsPage, type MetricsPage } from './metrics-page.ts';
import { joinPieces } from './testing/metrics-pages.ts';

const { signal } = new AbortController();
const createPage = (): MetricsPage => createMetricsPage({ mode: 'nftables', ipFamilies: ['IPv4'], clock: systemClock });
const lines = async (page: MetricsPage, accept?: string): Promise<readonly string[]> =>
  (await joinPieces(await page.metricsText(accept, signal))).split('\n');

describe('the page', () => {
  test('has what was measured and what is collected, by name', async () => {
    const page = createPage();
    page.metrics.add('switchyard_drift_total', { ip_family: 'IPv4', kind: 'rule' });
    page.addCollector(async () => [collectedFamily('process_open_fds', [[12]])]);
    page.addCollector(() => [collectedFamily('switchyard_build_info', [[1, 'nftables', 'v24', '1.0']])]);
    const text = await lines(page);
    expect(text).toEqual(
      expect.arrayContaining([
        'switchyard_drift_total{ip_family="IPv4",kind="rule"} 1',
        'process_open_fds 12',
        'switchyard_build_info{backend="nftables",node_version="v24",version="1.0"} 1',
      ]),
    );
    const names = text.filter((line) => line.startsWith('# TYPE')).map((line) => line.split(' ')[2]);
    expect(names).toEqual([...names].sort());
    expect(new Set(names).size).toBe(names.length);
  });

  test.each([
    ['text', undefined, 'text/plain; version=0.0.4; charset=utf-8', ''],
    [
      'OpenMetrics',
      'application/openmetrics-text',
      'application/openmetrics-text; version=1.0.0; charset=utf-8',
      '# EOF',
    ],
  ])('is %s for the Accept header %s', async (_, accept, contentType, last) => {
    const page = createPage();
    const text = await page.metricsText(accept, signal);
    expect(text.contentType).toBe(contentType);
    expect((await joinPieces(text)).trimEnd().split('\n').at(-1)).toMatch(last);
  });

  test('gives way between pieces, also when one family is all of it', async () => {
    const page = createMetricsPage({ mode: 'nftables', ipFamilies: [], clock: systemClock });
    const series = Array.from(
      { length: 20_000 },
      (_, index) => [index, 'IPv4', 'ns', 'http', 'TCP', `s${index}`] as const,
    );
    page.addCollector(() => [collectedFamily('switchyard_service_connections_total', series)]);
    const { pieces } = await page.metricsText(undefined, signal);
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    let count = 0;
    for await (const piece of pieces) {
      count++;
      expect(piece.length).toBeLessThan(500_000);
    }
    clearInterval(timer);
    expect(count).toBeGreaterThan(5);
    expect(turns).toBeGreaterThanOrEqual(count - 2);
  });

  test('fails with what a collector fails with', async () => {
    const page = createPage();
    page.addCollector(() => Promise.reject(new HostError('x', 'no')));
    await expect(page.metricsText(undefined, signal)).rejects.toThrow('no');
  });
});

const key = (name: string): ServicePortKey => servicePortKey(serviceKey('shop', name), 'http', 'TCP');
const counted: ServiceCounters = {
  connections: 9,
  drops: { noLocalEndpoint: 1, noEndpoints: 2, sourceRange: 3 },
};

function setUp(wanted: MeasuredAgent['config']['serviceMetrics']) {
  const clock = new ManualClock();
  const logger = new MemoryLogger();
  const page = createPage();
  const kernel = { answer: async (): Promise<ReadonlyMap<ServicePortKey, ServiceCounters>> => new Map() };
  const backend = new RecordingBackend({ observers: { counters: () => kernel.answer() } });
  addMetrics(
    {
      config: {
        mode: 'nftables',
        featureGates: new Map([
          ['ComponentFlagz', false],
          ['AllowServiceExternalIPs', true],
        ]),
        serviceMetrics: wanted,
      },
      backends: [backend],
      host: { clock, logger, metrics: page.metrics, metricsPage: page, packetCounts: async () => new Map() },
      status: () => ({
        isInSync: true,
        missingResources: [],
        isNodeEligible: true,
        families: new Map([
          [
            'IPv4',
            {
              ipFamily: 'IPv4',
              lastApplied: undefined,
              generation: 1,
              slicesVersion: 0,
              pendingFor: millis(2500),
              failure: undefined,
              failedServices: new Map(),
            },
          ],
        ]),
      }),
      health: () => ({ isLive: true, isReady: false, isNodeEligible: false, isProgrammed: true, families: new Map() }),
    },
    signal,
  );
  return { clock, logger, page, kernel };
}

describe('a running agent', () => {
  test('exports gates, health and pending changes', async () => {
    const { page } = setUp({ kind: 'off' });
    const text = await lines(page);
    expect(text).toEqual(
      expect.arrayContaining([
        'kubernetes_feature_enabled{name="ComponentFlagz",stage="BETA"} 0',
        'kubernetes_feature_enabled{name="AllowServiceExternalIPs",stage="DEPRECATED"} 1',
        'switchyard_health{endpoint="healthz"} 0',
        'switchyard_health{endpoint="livez"} 1',
        'switchyard_oldest_pending_change_seconds{ip_family="IPv4"} 2.5',
      ]),
    );
    expect(text.find((line) => line.startsWith('kubernetes_build_info{'))).toMatch(
      /git_version="v1\.36\.\d+\+switchyard/,
    );
    expect(text.filter((line) => line.includes('switchyard_service_connections'))).toEqual([]);
  });

  test('exports each Service within the limit, and the number of omitted ones', async () => {
    const { clock, page, kernel } = setUp({ kind: 'on', limit: 1 });
    kernel.answer = async () =>
      new Map([
        [key('cart'), counted],
        [key('pay'), { ...counted, connections: 1 }],
      ]);
    const reading = lines(page);
    await clock.advance(0);
    const labels = 'ip_family="IPv4",namespace="shop",port="http",protocol="TCP"';
    expect(
      (await reading).filter((line) => line.startsWith('switchyard_service_') && !line.includes('failures')),
    ).toEqual([
      `switchyard_service_connections_total{${labels},service="cart"} 9`,
      `switchyard_service_drops_total{${labels},reason="no_endpoints",service="cart"} 2`,
      `switchyard_service_drops_total{${labels},reason="no_local_endpoint",service="cart"} 1`,
      `switchyard_service_drops_total{${labels},reason="source_range",service="cart"} 3`,
      'switchyard_service_metrics_omitted{ip_family="IPv4"} 1',
      'switchyard_service_ports{ip_family="IPv4"} 0',
    ]);
  });

  test('whose kernel cannot be read shows the last counters, counts that, and warns once', async () => {
    const { page, kernel, clock, logger } = setUp({ kind: 'on', limit: 10 });
    const connections = async (): Promise<readonly string[]> => {
      await clock.advance(6000);
      return (await lines(page)).filter((line) =>
        /^switchyard_service_(connections|metrics_failures)_total\{/.test(line),
      );
    };
    kernel.answer = async () => new Map([[key('cart'), counted]]);
    const [fresh = ''] = await connections();
    expect(fresh).toMatch(/ 9$/);
    kernel.answer = () => Promise.reject(new HostError('nft.busy', 'busy'));
    await connections();
    expect(await connections()).toEqual([fresh, 'switchyard_service_metrics_failures_total{ip_family="IPv4"} 2']);
    expect(logger.transitions).toEqual(['warn counters of Services cannot be read; the last ones are shown']);
  });
});

test('exports the values of the process in /proc', async () => {
  using watched = watchProcess();
  const page = createPage();
  page.addCollector(() => watched.collect());
  const values = new Map((await lines(page)).map((line) => line.split(' ') as [string, string]));
  const of = (name: string): number => Number(values.get(name));
  expect(of('process_resident_memory_bytes')).toBeGreaterThan(20e6);
  expect(of('process_virtual_memory_bytes')).toBeGreaterThan(of('process_resident_memory_bytes'));
  expect(of('process_cpu_seconds_total')).toBeGreaterThan(0);
  expect(of('process_open_fds')).toBeGreaterThan(3);
  expect(of('process_max_fds')).toBeGreaterThanOrEqual(of('process_open_fds'));
  expect(Math.abs(of('process_start_time_seconds') - Date.now() / 1000)).toBeLessThan(600);
  expect(of('nodejs_eventloop_utilization')).toBeLessThanOrEqual(1);
  expect(of('nodejs_eventloop_lag_max_seconds')).toBeGreaterThanOrEqual(0);
});
