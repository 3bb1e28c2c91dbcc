import { node, replaceAll, service, settle, slice } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { AgentBench, configOf } from './testing/agent-bench.ts';

const nodes = [node('n1', { addresses: ['192.0.2.1', 'fd00::1', '203.0.113.1'] })];
const cluster = replaceAll({
  services: [
    service('shop/cart', {
      clusterIps: ['10.96.0.10', 'fd00:10:96::10'],
      external: 'Local',
      loadBalancerIps: ['198.51.100.7'],
      healthCheckNodePort: 30001,
      ports: [{ nodePort: 30080 }],
    }),
  ],
  slices: [slice('shop/cart', { endpoints: [{ ip: '10.244.1.1', node: 'n1' }] })],
  nodes,
});

test.each([
  ['on', ['clusterIP', 'externalIP']],
  ['off', ['clusterIP']],
])('the gate AllowServiceExternalIPs, %s, decides about external IPs', async (state, expected) => {
  await using bench = new AgentBench(configOf(`--feature-gates=AllowServiceExternalIPs=${state === 'on'}`));
  const cart = service('shop/cart', { externalIps: ['203.0.113.77'] });
  await bench.push(replaceAll({ services: [cart], nodes: [node('n1', { addresses: ['192.0.2.1'] })] }));
  const [forwarding] = bench.backends.IPv4.kernel.values();
  expect(forwarding?.frontends.map(({ kind }) => kind)).toEqual(expected);
});

test.each([
  [undefined, ['clusterIP', 'loadBalancerIP']],
  ['on', ['clusterIP']],
  ['off', ['clusterIP', 'loadBalancerIP']],
])('the gate SwitchyardLoadBalancerIPModeRouter, %s, decides about Router IPs', async (state, expected) => {
  const flags = state === undefined ? [] : [`--feature-gates=SwitchyardLoadBalancerIPModeRouter=${state === 'on'}`];
  await using bench = new AgentBench(configOf(...flags));
  const cart = service('shop/cart', { loadBalancerIps: [['198.51.100.7', 'Router']] });
  await bench.push(replaceAll({ services: [cart], nodes: [node('n1', { addresses: ['192.0.2.1'] })] }));
  const [forwarding] = bench.backends.IPv4.kernel.values();
  expect(forwarding?.frontends.map(({ kind }) => kind)).toEqual(expected);
});

describe('a configuration that changes', () => {
  test.each<readonly [string, readonly string[], object]>([
    ['where NodePorts answer', ['--nodeport-addresses=10.0.0.0/8'], { nodePortCidrs: ['10.0.0.0/8'] }],
    ['where pods are', ['--cluster-cidr=10.244.0.0/16'], { podDetector: { kind: 'cidr', cidr: '10.244.0.0/16' } }],
  ])('%s', async (_, args, expected) => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    expect(bench.backends.IPv4.table).not.toMatchObject(expected);
    await bench.reconfigure(configOf(...args));
    expect(bench.backends.IPv4.table).toMatchObject(expected);
  });

  test('health checks move with the NodePorts', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    await bench.reconfigure(configOf('--nodeport-addresses=10.0.0.0/8'));
    expect(bench.listener.places).toEqual(['10.0.0.1:30001', 'any-IPv6:30001', 'any-both:10256']);
  });

  test('masquerading', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    await bench.reconfigure(configOf('--masquerade-all'));
    const [forwarding] = bench.backends.IPv4.kernel.values();
    expect(forwarding?.frontends[0]?.decisions.pod).toMatchObject({ kind: 'forward', masquerade: true });
  });

  test('the fallback to terminating endpoints', async () => {
    await using bench = new AgentBench(configOf());
    const leaving = { ip: '10.244.1.1', ready: false, serving: true, terminating: true };
    const services = [service('shop/cart', { clusterIps: ['10.96.0.10'] })];
    await bench.push(replaceAll({ services, slices: [slice('shop/cart', { endpoints: [leaving] })], nodes }));
    const verdict = (): unknown => [...bench.backends.IPv4.kernel.values()][0]?.frontends[0]?.decisions.pod.kind;
    expect(verdict()).toBe('forward');
    await bench.reconfigure(configOf('--switchyard-terminating-fallback=off'));
    expect(verdict()).toBe('reject');
  });

  test('a shorter minSyncPeriod counts at once for what already waits', async () => {
    await using bench = new AgentBench(configOf('--iptables-min-sync-period=1h', '--iptables-sync-period=2h'));
    await bench.push(cluster);
    await bench.push(replaceAll({ nodes }));
    expect(bench.backends.IPv4.kernel.size).toBe(1);
    await bench.reconfigure(configOf());
    await bench.clock.advance(100);
    expect(bench.backends.IPv4.kernel.size).toBe(0);
  });

  test('a sync period counts at once for health', async () => {
    const release = Promise.withResolvers<void>();
    await using bench = new AgentBench(configOf(), { during: () => release.promise });
    await bench.push(cluster);
    await bench.clock.advance(10_000);
    expect(bench.status('/livez')).toBe(200);
    await bench.reconfigure(configOf('--iptables-sync-period=5s'));
    expect(bench.status('/livez')).toBe(503);
    release.resolve();
    await settle();
    expect(bench.status('/livez')).toBe(200);
  });

  test('one that says the same writes nothing', async () => {
    await using bench = new AgentBench(configOf());
    await bench.push(cluster);
    await bench.reconfigure(configOf('-v=4'));
    expect(bench.backends.IPv4.applies).toHaveLength(1);
  });
});
