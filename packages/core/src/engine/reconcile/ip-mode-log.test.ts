import { expect, test } from 'vitest';
import type { ClusterEvent } from '../../model/state/cluster-event.ts';
import { service } from '../../testing/builders.ts';
import { cluster, ReconcilerBench } from '../../testing/reconciler-bench.ts';

const warning = 'unknown ipMode of a load-balancer IP; its traffic is captured as with VIP';
const balanced = (...loadBalancerIps: readonly (string | readonly [string, string])[]): ClusterEvent => ({
  kind: 'upsert',
  resource: 'Service',
  item: service('shop/cart', { loadBalancerIps, ports: [{ port: 80 }, { name: 'tls', port: 443 }] }),
});

test('an unknown ipMode is named once for each Service and value', async () => {
  await using bench = new ReconcilerBench();
  await bench.push(cluster);
  await bench.push([balanced(['198.51.100.7', 'Later'])]);
  await bench.push([balanced(['198.51.100.7', 'Later'], ['198.51.100.8', 'Later'], ['198.51.100.9', 'Other'])]);
  await bench.push([balanced('198.51.100.7')]);
  await bench.push([balanced(['198.51.100.7', 'Later'])]);
  expect(bench.messages(warning)).toMatchObject([
    { service: 'shop/cart', ipMode: 'Later' },
    { service: 'shop/cart', ipMode: 'Other' },
  ]);
});

test.for([
  ['asVip', 1],
  ['localOnly', 0],
] as const)('Router is unknown unless it is switched on: %s', async ([routerIpMode, lines]) => {
  await using bench = new ReconcilerBench({ routerIpMode });
  await bench.push(cluster);
  await bench.push([balanced(['198.51.100.7', 'Router'], '198.51.100.8', ['198.51.100.9', 'Proxy'])]);
  expect(bench.messages(warning)).toHaveLength(lines);
});
