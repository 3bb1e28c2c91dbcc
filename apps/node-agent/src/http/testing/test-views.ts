import { millis } from '@switchyard/core';
import type { MetricsPage } from '../../metrics/metrics-page.ts';
import type { EndpointViews } from '../metrics-routes.ts';
import { now } from './debug-bench.ts';

/** Views of an agent that started an hour, two minutes and three seconds ago. */
export function testViews(more: Partial<EndpointViews> = {}): EndpointViews {
  return {
    configz: () => ({ 'kubeproxy.config.k8s.io': { kind: 'KubeProxyConfiguration', mode: 'nftables' } }),
    flagz: () =>
      new Map([
        ['v', '2'],
        ['config', '/etc/config.conf'],
      ]),
    setVerbosity: () => undefined,
    process: {
      startTime: millis(now - 3_723_000),
      nodeVersion: 'v24.21.0',
      version: '0.4.0',
      commandLine: ['node', 'main.mjs', '-v=2'],
    },
    ...more,
  };
}

/** A page of one metric, in two pieces. */
export const testMetricsPage: Pick<MetricsPage, 'metricsText'> = {
  metricsText: async (accept) => ({ contentType: `as ${accept ?? 'usual'}`, pieces: pieces() }),
};

async function* pieces(): AsyncGenerator<string> {
  yield '# TYPE up gauge\n';
  yield 'up 1\n';
}
