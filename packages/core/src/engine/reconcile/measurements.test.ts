import { describe, expect, test } from 'vitest';
import { node, service, slice } from '../../testing/builders.ts';
import { HostError } from '../../base/errors.ts';
import { MemoryMetrics } from '../../testing/memory-metrics.ts';
import { FamilyMetrics } from './family-metrics.ts';
import { replaceAll } from '../../testing/expand-states.ts';
import { cartSlice, cluster, hang, ReconcilerBench } from '../../testing/reconciler-bench.ts';
import { RecordingBackend } from '../../testing/recording-backend.ts';

const refusal = { kind: 'refused' } as const;
const pending = (bench: ReconcilerBench): Readonly<Record<string, number>> => bench.metrics.like('_changes_pending');

describe('changes', () => {
  test('each object of a list counts, and nothing is pending once it is applied', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    expect(bench.metrics.like('_changes_')).toEqual({
      kubeproxy_sync_proxy_rules_service_changes_total: 2,
      kubeproxy_sync_proxy_rules_endpoint_changes_total: 2,
      kubeproxy_sync_proxy_rules_service_changes_pending: 0,
      kubeproxy_sync_proxy_rules_endpoint_changes_pending: 0,
    });
  });

  test('are pending until the slowest family has applied them', async () => {
    const ipv6 = new RecordingBackend({ ipFamily: 'IPv6', during: (_, signal) => hang(signal) });
    await using bench = new ReconcilerBench({ other: ipv6 });
    await bench.push(cluster);
    expect(pending(bench)).toEqual({
      kubeproxy_sync_proxy_rules_service_changes_pending: 2,
      kubeproxy_sync_proxy_rules_endpoint_changes_pending: 2,
    });
  });

  test('stay pending when the apply failed, and those that come meanwhile add to them', async () => {
    await using bench = new ReconcilerBench({ faults: [undefined, refusal] });
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.3'));
    expect(pending(bench)['kubeproxy_sync_proxy_rules_endpoint_changes_pending']).toBe(1);
    await bench.clock.advance(1000);
    expect(pending(bench)['kubeproxy_sync_proxy_rules_endpoint_changes_pending']).toBe(0);
  });

  test('one that changes nothing counts and does not wait', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    await bench.push(cartSlice('10.244.1.1'));
    expect(bench.metrics.like('endpoint_changes')).toEqual({
      kubeproxy_sync_proxy_rules_endpoint_changes_total: 3,
      kubeproxy_sync_proxy_rules_endpoint_changes_pending: 0,
    });
  });
});

describe('applies', () => {
  const observed = (bench: ReconcilerBench): Readonly<Record<string, number>> =>
    Object.fromEntries(
      [...bench.metrics.observed].flatMap(([series, values]) => {
        const name = /^kubeproxy_(sync.*)_proxy_rules_duration_seconds\{ip_family=IPv4\}$/.exec(series)?.[1];
        return name === undefined ? [] : [[name, values.length]];
      }),
    );

  test('are timed as full or partial, and all together', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    expect(observed(bench)).toEqual({ sync: 1, sync_full: 1 });
    await bench.push(cartSlice('10.244.1.3'));
    expect(observed(bench)).toEqual({ sync: 2, sync_full: 1, sync_partial: 1 });
  });

  test('that fail are timed and counted', async () => {
    await using bench = new ReconcilerBench({ faults: [refusal] });
    await bench.push(cluster);
    expect(observed(bench)).toEqual({ sync: 1, sync_full: 1 });
    expect(bench.metrics.like('failures_total')).toEqual({ 'switchyard_apply_failures_total{ip_family=IPv4}': 1 });
  });

  test('the first that succeeds is the adoption', async () => {
    await using bench = new ReconcilerBench({ faults: [refusal] });
    await bench.push(cluster);
    expect(bench.metrics.like('adoption')).toEqual({});
    await bench.clock.advance(1000);
    const adoption = bench.metrics.like('adoption_writes');
    expect(Object.keys(adoption)).toEqual(['switchyard_adoption_writes{ip_family=IPv4}']);
    await bench.push(cartSlice('10.244.1.3', '10.244.1.4'));
    expect(bench.metrics.like('adoption_writes')).toEqual(adoption);
  });

  test('say how many Service ports are in the kernel', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(cluster);
    expect(bench.metrics.like('switchyard_service_ports')).toEqual({ 'switchyard_service_ports{ip_family=IPv4}': 2 });
  });
});

test('a failed apply of nftables counts under the name kube-proxy has for it', () => {
  const metrics = new MemoryMetrics();
  const measured = new FamilyMetrics(metrics, { name: 'nftables', ipFamily: 'IPv6' });
  measured.noteApply({ scope: 'full', durationMs: 1, outcome: { status: 'failed', error: new HostError('no', 'no') } });
  expect(Object.fromEntries(metrics.values)).toEqual({
    'kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family=IPv6}': 1,
  });
});

test.each([
  ['full', 'failed', 'restore'],
  ['full', 'partial', 'restore'],
  ['delta', 'failed', 'partial_restore'],
  ['delta', 'partial', 'partial_restore'],
] as const)('a %s apply of iptables that ends as %s is a failed %s, as kube-proxy calls it', (scope, status, name) => {
  const metrics = new MemoryMetrics();
  const measured = new FamilyMetrics(metrics, { name: 'iptables', ipFamily: 'IPv4' });
  const error = new HostError('no', 'no');
  const outcome = status === 'failed' ? { status, error } : { status, writes: 1, failed: new Map() };
  measured.noteApply({ scope, durationMs: 1, outcome });
  expect(metrics.like('failures_total')).toEqual({
    [`kubeproxy_sync_proxy_rules_iptables_${name}_failures_total{ip_family=IPv4}`]: 1,
  });
});

describe('Service ports without local endpoints', () => {
  const noLocal = (bench: ReconcilerBench): readonly (number | undefined)[] =>
    ['internal', 'external'].map((policy) =>
      bench.metrics.values.get(
        `kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family=IPv4,traffic_policy=${policy}}`,
      ),
    );
  const remote = slice('shop/cart', { endpoints: [{ ip: '10.244.2.1', node: 'n2' }] });
  const state = (spec: Parameters<typeof service>[1], endpoints = remote) =>
    replaceAll({ services: [service('shop/cart', spec)], slices: [endpoints], nodes: [node('n1')] });

  test.each<readonly [string, Parameters<typeof service>[1], readonly number[]]>([
    ['both policies Cluster', { ports: [{ nodePort: 30_000 }] }, [0, 0]],
    ['internal Local', { internal: 'Local' }, [1, 0]],
    ['external Local on a NodePort', { external: 'Local', ports: [{ nodePort: 30_000 }] }, [0, 1]],
    ['external Local that nothing external reaches', { external: 'Local' }, [0, 0]],
    ['both Local', { internal: 'Local', external: 'Local', ports: [{ nodePort: 30_000 }] }, [1, 1]],
  ])('%s, endpoint elsewhere', async (_, spec, expected) => {
    await using bench = new ReconcilerBench();
    await bench.push(state(spec));
    expect(noLocal(bench)).toEqual(expected);
  });

  test('none anywhere is another matter: that is rejected, not dropped', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(state({ internal: 'Local' }, slice('shop/cart', { ipFamily: 'IPv4' })));
    expect(noLocal(bench)).toEqual([0, 0]);
  });

  test('one that gets a local endpoint, or goes, no longer counts', async () => {
    await using bench = new ReconcilerBench();
    await bench.push(state({ internal: 'Local' }));
    expect(noLocal(bench)).toEqual([1, 0]);
    const local = slice('shop/cart', { endpoints: [{ ip: '10.244.1.1', node: 'n1' }] });
    await bench.push([{ kind: 'upsert', resource: 'EndpointSlice', item: local }]);
    expect(noLocal(bench)).toEqual([0, 0]);
    await bench.push([{ kind: 'upsert', resource: 'EndpointSlice', item: remote }]);
    expect(noLocal(bench)).toEqual([1, 0]);
    await bench.push([{ kind: 'delete', resource: 'Service', name: 'shop/cart' }]);
    expect(noLocal(bench)).toEqual([0, 0]);
  });
});
