import { seconds } from '@switchyard/core';
import { expect, test } from 'vitest';
import type { KnownProxy } from '../rollout-setting.ts';
import { exampleObjects } from '../testing/example-objects.ts';
import { forecast, lostRequests } from './forecast.ts';

/** Requests per second of the measurement. */
const rate = 100;

// Rollouts of three pods that end at SIGTERM, with surge, in a lab of two nodes: lost requests of a client in the cluster and of one at a NodePort.
test.each<[what: string, proxy: KnownProxy, inside: readonly number[], nodePort: readonly number[]]>([
  ['kube-proxy 1.36.2, nftables', 'kube-proxy', [91, 80, 92, 81, 91, 62], [85, 72, 79, 79, 69, 69]],
  ['kube-proxy 1.36.2, iptables', 'kube-proxy', [57, 66, 65, 74, 61, 55], [66, 72, 72, 65, 83, 50]],
  ['Switchyard, iptables', 'switchyard-iptables', [84, 91, 81, 76, 84, 86], [86, 83, 83, 77, 83, 75]],
  ['Switchyard, nftables', 'switchyard', [0, 0, 1, 1, 0, 2], [1, 2, 2, 0, 1, 0]],
])('%s: each measured loss is in the interval, and the mean near the expected one', (_, proxy, ...measured) => {
  const { deployments, ...example } = exampleObjects({
    service: { type: 'NodePort', externalTrafficPolicy: 'Cluster' },
    deployment: { replicas: 3, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
    pod: { affinity: undefined },
  });
  const objects = { ...example, deployment: deployments[0]!, services: [example.service] };
  const conditions = {
    proxy,
    proxyDelay: undefined,
    gate: 'absent',
    drain: seconds(0),
    checkOf: () => expect.unreachable('no load balancer follows pods'),
  } as const;
  const { paths } = forecast(objects, conditions);
  expect(paths.map(({ clients }) => clients)).toEqual(['inside', 'outside']);
  for (const [index, path] of paths.entries()) {
    const { least, expected = 0, most } = lostRequests(path, rate);
    const losses = measured[index] ?? [];
    for (const lost of losses) {
      expect(lost).toBeGreaterThanOrEqual(least);
      expect(lost).toBeLessThanOrEqual(most);
    }
    const mean = losses.reduce((sum, lost) => sum + lost, 0) / losses.length;
    expect(Math.abs(mean - expected)).toBeLessThan(20);
  }
});
