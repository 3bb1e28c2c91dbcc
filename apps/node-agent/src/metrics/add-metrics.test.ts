import { noopLogger, type ServicePortKey, serviceKey, servicePortKey } from '@switchyard/core';
import { type ServiceCounters } from '@switchyard/core/engine';
import { ManualClock, RecordingBackend } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { ServiceMetricsConfig } from '../config/run-config.ts';
import { addMetrics } from './agent-metrics.ts';
import { createMetricsPage } from './metrics-page.ts';
import { joinPieces } from './testing/metrics-pages.ts';

const { signal } = new AbortController();
const counted: ServiceCounters = { connections: 9, drops: { noLocalEndpoint: 0, noEndpoints: 0, sourceRange: 0 } };
const keyOf = (name: string): ServicePortKey => servicePortKey(serviceKey('shop', name), 'http', 'TCP');

test('metrics of Services follow the configuration: off, on, another limit', async () => {
  const clock = new ManualClock();
  const page = createMetricsPage({ mode: 'nftables', ipFamilies: ['IPv4'], clock });
  const kernel = new Map(['a', 'b', 'c'].map((name) => [keyOf(name), counted] as const));
  const backend = new RecordingBackend({ observers: { counters: async () => kernel } });
  let wanted: ServiceMetricsConfig = { kind: 'off' };
  addMetrics(
    {
      config: { mode: 'nftables', featureGates: new Map(), serviceMetrics: wanted },
      now: () => ({ serviceMetrics: wanted }),
      backends: [backend],
      host: {
        clock,
        logger: noopLogger,
        metrics: page.metrics,
        metricsPage: page,
        packetCounts: async () => new Map(),
      },
      status: () => ({ isInSync: true, missingResources: [], isNodeEligible: true, families: new Map() }),
      health: () => ({ isLive: true, isReady: true, isNodeEligible: true, isProgrammed: true, families: new Map() }),
    },
    signal,
  );
  const series = async (): Promise<number> => {
    await clock.advance(5000);
    const asked = page.metricsText(undefined, signal);
    await clock.advance(0); // counters are chosen in a turn of its own
    const text = await joinPieces(await asked);
    return text.match(/^switchyard_service_connections_total\{/gm)?.length ?? 0;
  };
  expect(await series()).toBe(0);
  wanted = { kind: 'on', limit: 2 };
  expect(await series()).toBe(2);
  wanted = { kind: 'on', limit: 3 };
  expect(await series()).toBe(3);
  wanted = { kind: 'off' };
  expect(await series()).toBe(0);
});
