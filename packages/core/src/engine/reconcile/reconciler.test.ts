import { describe, expect, test } from 'vitest';
import { ConfigError, InvariantError } from '../../base/errors.ts';
import { nodeName, type ServiceKey } from '../../model/records/keys.ts';
import type { ClusterState } from '../../model/state/cluster-state.ts';
import { node, service, serviceCidr, slice } from '../../testing/builders.ts';
import { replaceAll } from '../../testing/expand-states.ts';
import { settle } from '../../testing/manual-clock.ts';
import { cart, cartSlice, cluster, hang, pay, ReconcilerBench } from '../../testing/reconciler-bench.ts';
import { RecordingBackend } from '../../testing/recording-backend.ts';
import { millis } from '../../base/time.ts';
import type { StartCondition } from './reconciler.ts';

describe('before in-sync', () => {
  test.each([
    ['Services', 0],
    ['EndpointSlices', 1],
    ['Nodes', 2],
    ['ServiceCIDRs', 3],
  ])('nothing reaches the backend while %s are not listed', async (_, missing) => {
    await using bench = new ReconcilerBench();
    for (const [index, event] of cluster.entries()) if (index !== missing) await bench.push([event]);
    await bench.push(cartSlice('10.244.1.9'));
    await bench.clock.advance(600_000);
    expect(bench.backend.calls).toBe(0);
    expect(bench.happened).toEqual([]);
    expect(bench.family()).toMatchObject({ lastApplied: undefined, pendingFor: undefined });
    expect(bench.reconciler.status()).toMatchObject({
      isInSync: false,
      missingResources: [cluster[missing]?.resource],
    });
  });

  test('the first apply is full and comes at once', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    expect(bench.applies).toEqual(['full']);
    expect([...bench.recording.kernel.keys()]).toEqual([cart, pay]);
    expect(bench.reconciler.status()).toMatchObject({ isInSync: true, missingResources: [] });
  });
});

describe('a start condition', () => {
  const nodeKnown =
    (timeout: number, more: Partial<StartCondition> = {}) =>
    (state: ClusterState): readonly StartCondition[] => [
      { what: 'our Node', isMet: () => state.nodes.has(nodeName('n1')), timeout: millis(timeout), ...more },
    ];
  const nodeless = replaceAll({ services: [service('shop/cart')] });

  test('that is met with in-sync delays nothing', async () => {
    await using bench = new ReconcilerBench({ startConditions: nodeKnown(30_000) });
    await bench.push(cluster);
    expect(bench.applies).toEqual(['full']);
    expect(bench.clock.sleeping).toBe(2); // the family and its look for stale flows, not the condition's
  });

  test('that is met later delays the first apply until then', async () => {
    await using bench = new ReconcilerBench({ startConditions: nodeKnown(30_000) });
    await bench.push(nodeless);
    await bench.clock.advance(10_000);
    expect(bench.backend.calls).toBe(0);
    await bench.push([{ kind: 'upsert', resource: 'Node', item: node('n1') }]);
    expect(bench.applies).toEqual(['full']);
    expect(bench.messages('continuing without an unmet condition')).toEqual([]);
  });

  test('that is never met is given up with a warning', async () => {
    await using bench = new ReconcilerBench({ startConditions: nodeKnown(30_000) });
    await bench.push(nodeless);
    await bench.clock.advance(29_999);
    expect(bench.backend.calls).toBe(0);
    await bench.clock.advance(1);
    expect(bench.applies).toEqual(['full']);
    expect(bench.messages('continuing without an unmet condition')).toMatchObject([{ what: 'our Node' }]);
  });

  test('that is never met and must be ends the reconciler with its error, and nothing was written', async () => {
    const failure = new ConfigError('test', 'no Node');
    await using bench = new ReconcilerBench({ startConditions: nodeKnown(90_000, { failure: () => failure }) });
    await bench.push(nodeless);
    await bench.clock.advance(89_999);
    expect(bench.messages('waiting')).toEqual([{ message: 'waiting', what: 'our Node', timeoutMs: 90_000 }]);
    expect(bench.messages('still waiting')).toEqual([
      { message: 'still waiting', what: 'our Node', waitedMs: 30_000, timeoutMs: 90_000 },
      { message: 'still waiting', what: 'our Node', waitedMs: 60_000, timeoutMs: 90_000 },
    ]);
    await bench.clock.advance(1);
    await expect(bench.ended).rejects.toBe(failure);
    expect(bench.backend.calls).toBe(0);
  });

  test('that says it can never be met ends the reconciler at once', async () => {
    const failure = new ConfigError('test', 'an impossible Node');
    const isMet = (): boolean => {
      throw failure;
    };
    await using bench = new ReconcilerBench({ startConditions: nodeKnown(90_000, { isMet }) });
    await bench.push(nodeless);
    await expect(bench.ended).rejects.toBe(failure);
    expect(bench.clock.sleeping).toBe(0);
  });

  test('does not hide another one: all of them are waited for', async () => {
    const both = (state: ClusterState): readonly StartCondition[] => [
      ...nodeKnown(1000)(state),
      { what: 'pay', isMet: () => state.services.has('shop/pay' as ServiceKey), timeout: millis(5000) },
    ];
    await using bench = new ReconcilerBench({ startConditions: both });
    await bench.push(nodeless);
    await bench.clock.advance(4999);
    expect(bench.backend.calls).toBe(0);
    await bench.clock.advance(1);
    expect(bench.applies).toEqual(['full']);
    expect(bench.messages('continuing without an unmet condition')).toMatchObject([
      { what: 'our Node' },
      { what: 'pay' },
    ]);
  });
});

describe('changes', () => {
  test('are applied as a delta of what changed', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.1', '10.244.1.3'));
    await bench.push([{ kind: 'delete', resource: 'Service', name: 'shop/pay' }]);
    expect(bench.applies).toEqual(['full', `delta: ${cart}`, `delta: -${pay}`]);
  });

  test('that change nothing cause no apply', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.1'));
    await bench.push([{ kind: 'upsert', resource: 'Service', item: service('shop/headless', { isHeadless: true }) }]);
    expect(bench.applies).toEqual(['full']);
    expect(bench.family()?.pendingFor).toBeUndefined();
  });

  test('within the gap are applied together', async () => {
    await using bench = new ReconcilerBench({ minSyncPeriod: 1000 });
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.1', '10.244.1.3'));
    await bench.push([{ kind: 'delete', resource: 'Service', name: 'shop/pay' }]);
    expect(bench.applies).toEqual(['full']);
    await bench.clock.advance(1000);
    expect(bench.applies).toEqual(['full', `delta: ${cart} -${pay}`]);
  });

  test('wait for the backend floor unless configured', async () => {
    await using bench = new ReconcilerBench({ backend: { capabilities: { minSyncPeriod: millis(500) } } });
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.3'));
    await bench.clock.advance(499);
    expect(bench.applies).toHaveLength(1);
    await bench.clock.advance(1);
    expect(bench.applies).toHaveLength(2);
  });

  test('during an apply are not lost', async () => {
    const release = Promise.withResolvers<void>();
    await using bench = new ReconcilerBench({ backend: { during: () => release.promise } });
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.3'));
    release.resolve();
    await settle();
    expect(bench.applies).toEqual(['full', `delta: ${cart}`]);
  });

  test('of what lies outside the services are applied', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await bench.push([{ kind: 'upsert', resource: 'ServiceCIDR', item: serviceCidr('kubernetes', '10.96.0.0/16') }]);
    expect(bench.recording.applies.at(-1)?.request.scope).toMatchObject({ delta: { settingsChanged: true } });
  });

  test('report when they were applied, with figures', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.3'));
    expect(bench.messages('applied')).toMatchObject([
      { ipFamily: 'IPv4', generation: 1, writes: 2, scope: 'full', durationMs: 0 },
      { ipFamily: 'IPv4', generation: 2, writes: 1, scope: 'delta', durationMs: 0 },
    ]);
    expect(bench.messages('applied services').at(-1)).toMatchObject({ upserted: [cart], removed: [] });
  });
});

describe('resync', () => {
  test('is full, once an hour', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await bench.clock.advance(3_600_000);
    expect(bench.applies).toEqual(['full', 'full']);
  });

  test('is full on request', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    bench.reconciler.requestFullResync('another process flushed the ruleset');
    await settle();
    expect(bench.applies).toEqual(['full', 'full']);
    expect(bench.messages('full resync requested')).toMatchObject([{ reason: 'another process flushed the ruleset' }]);
  });
});

describe('two families', () => {
  const dual = replaceAll({
    services: [service('shop/cart', { clusterIps: ['10.96.0.10', 'fd00:10:96::10'] })],
    slices: [
      slice('shop/cart', { endpoints: ['10.244.1.1'] }),
      slice('shop/cart', { name: 'cart-6', endpoints: ['fd00:10:244::1'] }),
    ],
    nodes: [node('n1')],
  });

  test('are applied independently: one that fails does not hold up the other', async () => {
    const ipv6 = new RecordingBackend({ ipFamily: 'IPv6' });
    await using bench = new ReconcilerBench({
      other: ipv6,
      faults: Array.from({ length: 3 }, () => ({ kind: 'refused' }) as const),
    });
    await bench.push(dual);
    expect(bench.recording.applies).toHaveLength(0);
    expect(ipv6.kernel.get(cart)?.endpoints.Cluster).toMatchObject([{ address: 'fd00:10:244::1' }]);
    expect(bench.family('IPv4')).toMatchObject({ lastApplied: undefined });
    expect(bench.family('IPv6')).toMatchObject({ lastApplied: 1000, generation: 1, pendingFor: undefined });
  });

  test('one that hangs does not hold up the other', async () => {
    const ipv6 = new RecordingBackend({ ipFamily: 'IPv6', during: (_, signal) => hang(signal) });
    await using bench = new ReconcilerBench({ other: ipv6 });
    await bench.push(dual);
    await bench.push(cartSlice('10.244.1.3'));
    expect(bench.applies).toEqual(['full', `delta: ${cart}`]);
  });

  test('tables are there for a family once something was applied to it, and are what the kernel has', async () => {
    const ipv6 = new RecordingBackend({ ipFamily: 'IPv6' });
    await using bench = new ReconcilerBench({ other: ipv6, faults: [{ kind: 'refused' }] });
    expect(bench.reconciler.tables()).toEqual(new Map());
    await bench.push(dual);
    expect([...bench.reconciler.tables()]).toEqual([['IPv6', ipv6.table]]);
    await bench.clock.advance(10_000);
    expect(bench.reconciler.tables().get('IPv4')).toBe(bench.recording.table);
  });

  test('a change of one family is no work for the other', async () => {
    const ipv6 = new RecordingBackend({ ipFamily: 'IPv6' });
    await using bench = new ReconcilerBench({ other: ipv6 });
    await bench.push(dual);
    await bench.push(cartSlice('10.244.1.3'));
    expect(ipv6.applies).toHaveLength(1);
  });
});

describe('node eligibility (KEP-3836)', () => {
  test.each([
    ['before Nodes were listed the node counts as eligible', cluster.slice(0, 2), true],
    ['our Node in the list is eligible', cluster, true],
    ['a list without our Node is a no', replaceAll({ nodes: [node('other')] }), false],
    ['our Node on its way out is a no', replaceAll({ nodes: [{ ...node('n1'), isEligible: false }] }), false],
  ])('%s', async (_, batch, expected) => {
    await using bench = new ReconcilerBench();
    await bench.push(batch);
    expect(bench.reconciler.status().isNodeEligible).toBe(expected);
  });

  test('one line when the node must not be used any more, with the reason, and one when it may again', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    const leaving = { ...node('n1'), isEligible: false };
    await bench.push([{ kind: 'upsert', resource: 'Node', item: leaving }]);
    await bench.push([{ kind: 'upsert', resource: 'Node', item: { ...leaving, zone: 'b' } }]);
    await bench.push([{ kind: 'upsert', resource: 'Node', item: node('n1') }]);
    await bench.push([{ kind: 'delete', resource: 'Node', name: 'n1' }]);
    const lines = bench.logged.filter(({ message }) => message.startsWith('load balancers'));
    expect(lines).toEqual([
      expect.objectContaining({ nodeName: 'n1', reason: expect.stringContaining('ToBeDeletedByClusterAutoscaler') }),
      expect.objectContaining({ message: 'load balancers may use this node again' }),
      expect.objectContaining({ nodeName: 'n1', reason: expect.stringContaining('no such Node') }),
    ]);
  });
});

describe('the end', () => {
  test('a stop while waiting for in-sync resolves', async () => {
    await using bench = new ReconcilerBench();
    bench.stop();
    await expect(bench.ended).resolves.toBeUndefined();
  });

  test('a stop leaves what is in the kernel', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    bench.stop();
    await bench.ended;
    expect(bench.recording.kernel.size).toBe(2);
    expect(bench.clock.sleeping).toBe(0);
  });

  test('a stop waits for the apply in flight', async () => {
    const release = Promise.withResolvers<void>();
    await using bench = new ReconcilerBench({ backend: { during: () => release.promise } });
    await bench.push(cluster);
    let hasEnded = false;
    void bench.ended.then(() => (hasEnded = true));
    bench.stop();
    await settle();
    expect(hasEnded).toBe(false);
    release.resolve();
    await bench.ended;
  });

  test('a source that can never recover ends it with that error', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    const error = new InvariantError('kubeconfig is gone');
    bench.source.fail(error);
    await expect(bench.ended).rejects.toBe(error);
  });

  test('a backend that breaks its contract ends it with that error, and stops the other family', async () => {
    const error = new InvariantError('bug');
    const ipv6 = new RecordingBackend({ ipFamily: 'IPv6' });
    await using bench = new ReconcilerBench({ other: ipv6, faults: [undefined, { kind: 'thrown', error }] });
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.3'));
    await expect(bench.ended).rejects.toBe(error);
    expect(bench.clock.sleeping).toBe(0);
  });
});
