import { describe, expect, test } from 'vitest';
import { HostError } from '../../base/errors.ts';
import type { IpFamily } from '../../model/ip/address.ts';
import type { ServiceForwarding } from '../../model/forwarding/forwarding-table.ts';
import type { EndpointSliceRecord } from '../../model/records/records.ts';
import { serviceKey, servicePortKey } from '../../model/records/keys.ts';
import type { ClusterEvent } from '../../model/state/cluster-event.ts';
import { node, service, slice } from '../../testing/builders.ts';
import { replaceAll } from '../../testing/expand-states.ts';
import { settle } from '../../testing/manual-clock.ts';
import { cart, cartSlice, cluster, ReconcilerBench } from '../../testing/reconciler-bench.ts';
import { type Millis, millis } from '../../base/time.ts';

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

  test('follow a change of their port, which some backends let load balancers through by', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(withHealth);
    const moved = {
      ...exposed,
      healthCheckNodePort: service('x/y', { healthCheckNodePort: 30009 }).healthCheckNodePort,
    };
    await bench.push([{ kind: 'upsert', resource: 'Service', item: moved }]);
    expect(bench.applies).toEqual(['full', 'delta: ']);
    expect(bench.after('health')).toHaveLength(2);
  });
});

describe('stale flows', () => {
  const dns = service('kube-system/dns', { ports: [{ protocol: 'UDP', port: 53 }] });
  const dnsSlice = (...endpoints: readonly string[]): EndpointSliceRecord =>
    slice('kube-system/dns', { ports: [{ protocol: 'UDP', port: 5353 }], endpoints });
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
    ['an endpoint replaced', [{ kind: 'upsert', resource: 'EndpointSlice', item: dnsSlice('10.244.1.2') }], 2],
    [
      'an endpoint more leaves none',
      [{ kind: 'upsert', resource: 'EndpointSlice', item: dnsSlice('10.244.1.1', '10.244.1.2') }],
      1,
    ],
    ['a UDP service deleted', [{ kind: 'delete', resource: 'Service', name: 'kube-system/dns' }], 2],
    ['a change of a TCP service leaves none', cartSlice('10.244.1.3'), 1],
  ])('%s', async (_, batch, expected) => {
    await using bench = new ReconcilerBench();
    await bench.push(withDns);
    await bench.push(batch);
    await bench.clock.advance(100);
    expect(bench.after('flows')).toHaveLength(expected);
  });

  test('are looked for after a resync that had to write: flows began while our rules were gone', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(withDns);
    await bench.clock.advance(2000);
    const before = bench.after('flows').length;
    bench.reconciler.requestFullResync('nothing is missing');
    await bench.clock.advance(2000);
    expect(bench.after('flows')).toHaveLength(before);
    await bench.recording.cleanup(new AbortController().signal);
    bench.reconciler.requestFullResync('all is gone');
    await bench.clock.advance(500);
    expect(bench.after('flows')).toHaveLength(before + 1);
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

  test('are looked for a second time, for packets that were on their way through', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(withDns);
    await bench.clock.advance(999);
    expect(bench.after('flows')).toHaveLength(1);
    await bench.clock.advance(1);
    expect(bench.after('flows')).toHaveLength(2);
    await bench.clock.advance(60_000);
    expect(bench.after('flows')).toHaveLength(2);
  });

  describe('of removed endpoints', () => {
    const dnsFlows = ['10.96.0.10:53 10.244.1.1 5353'];
    const deleteDns: readonly ClusterEvent[] = [{ kind: 'delete', resource: 'Service', name: 'kube-system/dns' }];
    type Looks = (readonly string[])[];
    const benchOf = (looks: Looks): ReconcilerBench =>
      new ReconcilerBench({
        cleanStaleFlows: async (criteria) =>
          void looks.push(
            criteria().former.map(({ address, port, endpoints }) => `${address}:${port} ${[...endpoints].join()}`),
          ),
      });

    test('are looked for until a second after the apply, and then no more', async () => {
      const looks: Looks = [];
      await using bench = benchOf(looks);
      await bench.push(withDns);
      await bench.clock.advance(2000);
      await bench.push(deleteDns);
      await bench.clock.advance(2000);
      expect(looks).toEqual([[], [], dnsFlows, dnsFlows]);
      await bench.push([{ kind: 'upsert', resource: 'Service', item: dns }]);
      await bench.clock.advance(100);
      expect(looks.at(-1)).toEqual([]);
    });

    test('are those of the second before its Service went, too', async () => {
      const looks: Looks = [];
      await using bench = benchOf(looks);
      await bench.push(withDns);
      await bench.clock.advance(2000);
      await bench.push([{ kind: 'upsert', resource: 'EndpointSlice', item: dnsSlice('10.244.1.2') }]);
      await bench.clock.advance(500);
      await bench.push(deleteDns);
      await bench.clock.advance(100);
      expect(looks.at(-1)).toEqual([...dnsFlows, '10.96.0.10:53 10.244.1.2 5353']);
    });

    test('wait for the kernel to give up a Service that it would not give up at first', async () => {
      const looks: Looks = [];
      await using bench = benchOf(looks);
      await bench.push(withDns);
      await bench.clock.advance(2000);
      const key = servicePortKey(serviceKey('kube-system', 'dns'), '', 'UDP');
      bench.recording.refuse(key, new HostError('nft.refused', 'no'));
      await bench.push(deleteDns);
      await bench.clock.advance(500);
      expect(bench.family()?.failedServices.has(key)).toBe(true);
      expect(looks.flat()).toEqual([]);
      bench.recording.refuse(key, undefined);
      await bench.clock.advance(60_000);
      expect(looks.slice(2)).toEqual([dnsFlows, dnsFlows]);
    });
  });

  test('that could not be removed are tried again without a change, and logged once each way', async () => {
    let calls = 0;
    const cleanStaleFlows = async (): Promise<void> => {
      if (calls++ < 2) throw new HostError('conntrack.dump', 'interrupted');
    };
    await using bench = new ReconcilerBench({ cleanStaleFlows });
    await bench.push(withDns);
    await bench.clock.advance(3000);
    expect(calls).toBe(3);
    expect(bench.messages('stale flows not removed, will retry')).toHaveLength(1);
    expect(bench.messages('stale flows can be removed again')).toHaveLength(1);
  });

  test('never hold up an apply, and are judged by the newest table', async () => {
    const seen: (readonly string[])[] = [];
    const release = Promise.withResolvers<void>();
    await using bench = new ReconcilerBench({
      cleanStaleFlows: async (criteria) => {
        const look = (): void => void seen.push([...criteria().table.services.values()].flatMap(known));
        look();
        await release.promise;
        look();
      },
    });
    const known = (one: ServiceForwarding): readonly string[] =>
      one.protocol === 'UDP' ? one.knownEndpoints.map(({ address }) => address) : [];
    await bench.push(withDns);
    await bench.push([{ kind: 'upsert', resource: 'EndpointSlice', item: dnsSlice('10.244.1.2') }]);
    expect(bench.applies).toHaveLength(2);
    release.resolve();
    await settle();
    expect(seen).toEqual([['10.244.1.1'], ['10.244.1.2']]);
  });

  test.each([
    ['four times the CPU time of the look before', 250, 1000 + 100],
    ['0.1 s, where the look took long because the machine was busy', 0, 100],
  ])('are looked for again after %s', async (_, cpuTime, pause) => {
    const looks: Millis[] = [];
    const { promise: busy, resolve } = Promise.withResolvers<void>();
    await using bench = new ReconcilerBench({
      cleanStaleFlows: async () => {
        looks.push(bench.clock.monotonic());
        await busy;
        return millis(cpuTime);
      },
    });
    await bench.push(withDns);
    await bench.clock.advance(250);
    await bench.push([{ kind: 'upsert', resource: 'EndpointSlice', item: dnsSlice('10.244.1.2') }]);
    resolve();
    await bench.clock.advance(1500);
    expect(looks.slice(0, 2).map((at) => at - (looks[0] ?? 0))).toEqual([0, 250 + pause]);
  });

  test('of a service that failed are left alone, and looked for once it is in', async () => {
    const excepted: boolean[] = [];
    await using bench = new ReconcilerBench({
      cleanStaleFlows: async (criteria) => void excepted.push(criteria().except.has(key)),
    });
    const key = servicePortKey(serviceKey('kube-system', 'dns'), '', 'UDP');
    bench.recording.refuse(key, new HostError('nft.refused', 'no'));
    await bench.push(withDns);
    expect(excepted).toEqual([true]);
    bench.recording.refuse(key, undefined);
    await bench.clock.advance(1000);
    expect(excepted.at(-1)).toBe(false);
  });

  test('a look that breaks its promise ends the reconciler with its error', async () => {
    const error = new TypeError('a defect');
    await using bench = new ReconcilerBench({ cleanStaleFlows: () => Promise.reject(error) });
    await bench.push(withDns);
    await expect(bench.ended).rejects.toBe(error);
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

  test.each([
    ['forwards', 86_400_000],
    ['backwards', -86_400_000],
  ])('is right when the wall clock jumps %s while a change waits', async (_, jump) => {
    await using bench = new ReconcilerBench({ minSyncPeriod: 500 });
    await bench.push(cluster);
    await bench.push(timed(1000));
    bench.clock.jump(jump);
    await bench.clock.advance(500);
    expect(bench.latencies).toEqual([0.5]);
  });

  test.each([
    ['is ahead of the other by a day', 86_400_000, []],
    ['is behind the other by a day', -86_400_000, []],
    ['is behind the other by a little', -900, [0.5]],
  ])('is not told of changes whose age makes no sense, as when our clock %s', async (_, jump, expected) => {
    await using bench = new ReconcilerBench({ minSyncPeriod: 500 });
    await bench.push(cluster);
    bench.clock.jump(jump);
    await bench.push(timed(1000));
    await bench.clock.advance(500);
    expect(bench.latencies).toEqual(expected);
  });

  test('a failed apply adds to it', async () => {
    await using bench = new ReconcilerBench({ faults: [undefined, { kind: 'refused' }] });
    await bench.push(cluster);
    await bench.push(timed(1000));
    await bench.clock.advance(1000);
    expect(bench.latencies).toEqual([1]);
  });
});
