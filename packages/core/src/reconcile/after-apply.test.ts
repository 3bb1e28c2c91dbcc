import { describe, expect, test } from 'vitest';
import { HostError } from '../errors.ts';
import type { IpFamily } from '../ip/address.ts';
import type { EndpointSliceRecord } from '../records/endpoint-slice.ts';
import type { ClusterEvent } from '../state/cluster-event.ts';
import { node, service, slice } from '../testing/builders.ts';
import { replaceAll } from '../testing/expand-states.ts';
import { cart, cartSlice, cluster, ReconcilerBench } from '../testing/reconciler-bench.ts';
import { millis } from '../time.ts';

describe('health checks', () => {
  const exposed = service('shop/cart', {
    external: 'Local',
    loadBalancerIps: ['198.51.100.7'],
    healthCheckNodePort: 30001,
  });
  const local = slice('shop/cart', { endpoints: [{ ip: '10.244.1.1', node: 'n1' }] });
  const withHealth = replaceAll({ services: [exposed], slices: [local], nodes: [node('n1')] });
  const terminating = slice('shop/cart', { endpoints: [{ ip: '10.244.1.1', node: 'n1', terminating: true }] });

  test('fact 36: are announced after the apply, never before', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(withHealth);
    await bench.push([{ kind: 'upsert', resource: 'EndpointSlice', item: terminating }]);
    expect(bench.after('health')).toEqual([
      'health of IPv4: shop/cart=1 after 1',
      'health of IPv4: shop/cart=0 after 2',
    ]);
  });

  test('fact 36: are not announced after a failed apply', async () => {
    await using bench = new ReconcilerBench({ faults: [undefined, { kind: 'refused' }] });
    await bench.push(withHealth);
    await bench.push([{ kind: 'upsert', resource: 'EndpointSlice', item: terminating }]);
    expect(bench.after('health').at(-1)).toBe('health of IPv4: shop/cart=1 after 1');
    await bench.clock.advance(1000);
    expect(bench.after('health').at(-1)).toBe('health of IPv4: shop/cart=0 after 2');
  });

  test('of a service that failed stay as they were, others move on', async () => {
    await using bench = new ReconcilerBench();
    const second = service('shop/pay', {
      clusterIps: ['10.96.0.11'],
      external: 'Local',
      loadBalancerIps: ['198.51.100.8'],
      healthCheckNodePort: 30002,
    });
    await bench.push(withHealth);
    bench.recording.refuse(cart, new HostError('nft.refused', 'no'));
    await bench.push([
      { kind: 'upsert', resource: 'EndpointSlice', item: terminating },
      { kind: 'upsert', resource: 'Service', item: second },
    ]);
    expect(bench.after('health').at(-1)).toBe('health of IPv4: shop/cart=1 shop/pay=0 after 2');
  });

  test('of a new service that failed are not announced at all', async () => {
    await using bench = new ReconcilerBench();
    bench.recording.refuse(cart, new HostError('nft.refused', 'no'));
    await bench.push(withHealth);
    expect(bench.after('health').at(-1)).toBe('health of IPv4: after 1');
  });

  test('follow a change that needs no apply', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(withHealth);
    const moved = {
      ...exposed,
      healthCheckNodePort: service('x/y', { healthCheckNodePort: 30009 }).healthCheckNodePort,
    };
    await bench.push([{ kind: 'upsert', resource: 'Service', item: moved }]);
    expect(bench.applies).toEqual(['full']);
    expect(bench.after('health')).toHaveLength(2);
  });
});

describe('stale flows', () => {
  const dns = service('kube-system/dns', { ports: [{ protocol: 'UDP', port: 53 }] });
  const dnsSlice = (ip: string): EndpointSliceRecord =>
    slice('kube-system/dns', { ports: [{ protocol: 'UDP', port: 5353 }], endpoints: [ip] });
  const withDns = replaceAll({
    services: [dns, service('shop/cart', { clusterIps: ['10.96.0.12'] })],
    slices: [dnsSlice('10.244.1.1')],
    nodes: [node('n1')],
  });

  test('are cleaned after the first apply, after health', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(withDns);
    expect(bench.happened).toEqual(['health of IPv4: after 1', 'flows of IPv4 after 1']);
  });

  test.each<readonly [string, readonly ClusterEvent[], number]>([
    ['a change of a UDP service', [{ kind: 'upsert', resource: 'EndpointSlice', item: dnsSlice('10.244.1.2') }], 2],
    ['the end of a UDP service', [{ kind: 'delete', resource: 'Service', name: 'kube-system/dns' }], 2],
    ['a change of a TCP service does not count', cartSlice('10.244.1.3'), 1],
  ])('%s', async (_, batch, expected) => {
    await using bench = new ReconcilerBench();
    await bench.push(withDns);
    await bench.push(batch);
    expect(bench.after('flows')).toHaveLength(expected);
  });

  test('are left alone after a failed apply', async () => {
    await using bench = new ReconcilerBench({ faults: [{ kind: 'refused' }] });
    await bench.push(withDns);
    expect(bench.after('flows')).toEqual([]);
  });

  test('are left alone for a backend without kernel conntrack', async () => {
    await using bench = new ReconcilerBench({ backend: { capabilities: { usesKernelConntrack: false } } });
    await bench.push(withDns);
    expect(bench.after('flows')).toEqual([]);
  });

  test('that could not be removed are tried again after the next apply, whatever it is about', async () => {
    let calls = 0;
    await using bench = new ReconcilerBench({
      cleanStaleFlows: async () => {
        if (calls++ === 0) throw new HostError('conntrack.dump', 'interrupted');
      },
    });
    await bench.push(withDns);
    expect(bench.messages('stale flows not removed, will retry after the next apply')).toHaveLength(1);
    await bench.push(cartSlice('10.244.1.3'));
    await bench.push(cartSlice('10.244.1.4'));
    expect(bench.after('flows')).toHaveLength(2);
  });
});

describe('network programming latency', () => {
  function timed(time: number, ipFamily: IpFamily = 'IPv4'): readonly ClusterEvent[] {
    const ip = ipFamily === 'IPv4' ? `10.244.2.${time % 250}` : `fd00::${time % 250}`;
    const item = { ...slice('shop/cart', { endpoints: [ip] }), lastChangeTriggerTime: millis(time) };
    return [{ kind: 'upsert', resource: 'EndpointSlice', item }];
  }

  test('is measured from the trigger time to the end of the apply', async () => {
    await using bench = new ReconcilerBench({ minSyncPeriod: 500 });
    await bench.push(cluster);
    await bench.push(timed(1000));
    await bench.clock.advance(500);
    expect(bench.latencies).toEqual([0.5]);
  });

  test.each([
    ['changes older than this process are skipped', timed(999)],
    ['changes of the other family are skipped', timed(1000, 'IPv6')],
  ])('%s', async (_, batch) => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await bench.push(batch);
    expect(bench.latencies).toEqual([]);
  });

  test('a failed apply adds to it', async () => {
    await using bench = new ReconcilerBench({ faults: [undefined, { kind: 'refused' }] });
    await bench.push(cluster);
    await bench.push(timed(1000));
    await bench.clock.advance(1000);
    expect(bench.latencies).toEqual([1]);
  });
});
