import { millis } from '@switchyard/core';
import type { EndpointViews } from '../metrics-routes.ts';
import { now } from './debug-bench.ts';

/** Views of an agent that started an hour, two minutes and three seconds ago. */
export function testViews(more: Partial<EndpointViews> = {}): EndpointViews {
  return {
    metricsText: async () => '# TYPE up gauge\nup 1\n',
    configz: () => ({ kind: 'KubeProxyConfiguration', mode: 'nftables' }),
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
