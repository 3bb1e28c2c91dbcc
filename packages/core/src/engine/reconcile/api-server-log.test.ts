import { expect, test } from 'vitest';
import type { ClusterEvent } from '../../model/state/cluster-event.ts';
import { service } from '../../testing/builders.ts';
import { cluster, ReconcilerBench } from '../../testing/reconciler-bench.ts';

const warning = 'service claims an address of the API server; this address is not forwarded';
const asking = (...externalIps: readonly string[]): ClusterEvent => {
  const item = service('shop/evil', { clusterIps: ['10.96.0.66'], externalIps, ports: [{ port: 6443 }] });
  return { kind: 'upsert', resource: 'Service', item };
};

test('a Service that claims an address of the API server is named once in the log and by an Event', async () => {
  await using bench = new ReconcilerBench({ apiServers: [['192.0.2.1', 6443]] });
  await bench.push(cluster);
  await bench.push([asking('192.0.2.1')]);
  await bench.push([asking('192.0.2.1', '192.0.2.7')]);
  expect(bench.messages(warning)).toMatchObject([{ service: 'shop/evil:/TCP', addresses: ['192.0.2.1:6443'] }]);
  expect(bench.events).toEqual([
    {
      type: 'Warning',
      reason: 'ApiServerAddressNotForwarded',
      action: 'Forward',
      regarding: { kind: 'Service', namespace: 'shop', name: 'evil', uid: '' },
      note: expect.stringContaining('node n1: shop/evil:/TCP claims 192.0.2.1:6443'),
    },
  ]);
});

test('a Service that stops that claim and makes it again is named again', async () => {
  await using bench = new ReconcilerBench({ apiServers: [['192.0.2.1', 6443]] });
  await bench.push(cluster);
  for (const ip of ['192.0.2.1', '192.0.2.7', '192.0.2.1']) await bench.push([asking(ip)]);
  expect(bench.messages(warning)).toHaveLength(2);
});
