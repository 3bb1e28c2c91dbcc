import { describe, expect, test } from 'vitest';
import { parseIp } from '../ip/address.ts';
import { canLeaveStaleFlows, flowJudge, formerEndpoints } from '../../engine/conntrack/stale-flows.ts';
import { parsePort } from '../ip/port.ts';
import {
  type EndpointSpec,
  flow,
  node,
  type OptionsSpec,
  outcome,
  type PortSpec,
  service,
  type ServiceSpec,
  slice,
  tableOf,
  tableOptions,
  testTraits,
  verdictText,
} from '../../testing/index.ts';
import { explain } from './explain.ts';
import type { Flow } from './explain-types.ts';
import { diffTables, isSameForwarding } from './build-table.ts';
import type { ForwardingTable } from './forwarding-table.ts';

// Load-balancer IPs with ipMode Router (our gate SwitchyardLoadBalancerIPModeRouter).

const router = '198.51.100.7';
const vip = '198.51.100.8';
const external = '203.0.113.77';
const here = { ip: '10.244.1.5', node: 'n1' };
const there = { ip: '10.244.2.5', node: 'n2' };
const on: OptionsSpec = { routerIpMode: 'localOnly', nodePortCidrs: ['192.0.2.0/24'] };

/** A Service with a `Router` IP, a VIP, an external IP and a NodePort. */
function tableWith(
  endpoints: readonly EndpointSpec[],
  spec: ServiceSpec = {},
  options: OptionsSpec = on,
  port: PortSpec = {},
): ForwardingTable {
  return tableOf(
    {
      services: [
        service('shop/cart', {
          type: 'LoadBalancer',
          loadBalancerIps: [[router, 'Router'], vip],
          externalIps: [external],
          ports: [{ port: 80, nodePort: 30080, ...port }],
          ...spec,
        }),
      ],
      slices: [slice('shop/cart', { endpoints, ports: [{ port: 8080, ...port }] })],
      nodes: [node('n1', { addresses: ['192.0.2.1'] })],
    },
    tableOptions(options),
  );
}

const senders = ['pod', 'node', 'outside'] as const;
function outcomes(table: ForwardingTable, destination: string, more: Parameters<typeof flow>[2] = {}): string[] {
  return senders.map((from) => outcome(table, flow(from, `${destination}:80`, more)));
}

describe.each(['Cluster', 'Local'] as const)('with externalTrafficPolicy %s, a Router IP', (policy) => {
  test('leads every sender to endpoints on this node only, and no sender is masqueraded', () => {
    const table = tableWith([here, there], { external: policy });
    expect(outcomes(table, router)).toEqual(['10.244.1.5', '10.244.1.5', '10.244.1.5']);
  });

  test('prefers a ready endpoint here, then one here that still serves (KEP-1669)', () => {
    const draining = { ip: '10.244.1.6', node: 'n1', terminating: true };
    expect(outcomes(tableWith([here, draining, there], { external: policy }), router)).toEqual([
      '10.244.1.5',
      '10.244.1.5',
      '10.244.1.5',
    ]);
    expect(outcomes(tableWith([draining, there], { external: policy }), router)).toEqual([
      '10.244.1.6',
      '10.244.1.6',
      '10.244.1.6',
    ]);
    const stopped = { ...draining, serving: false };
    expect(outcomes(tableWith([stopped, there], { external: policy }), router)).toEqual(['pass', 'pass', 'pass']);
    const off = tableWith([draining, there], { external: policy }, { ...on, terminatingFallback: 'off' });
    expect(outcomes(off, router)).toEqual(['pass', 'pass', 'pass']);
  });

  test.each([
    ['no endpoint on this node', [there]],
    ['no endpoint at all', []],
    ['one here that is not ready', [{ ...here, ready: false }]],
  ] as const)('is in no table with %s, also with source ranges', (_, endpoints) => {
    for (const sourceRanges of [[], ['10.0.0.0/8']]) {
      const table = tableWith(endpoints, { external: policy, sourceRanges });
      const [port] = table.services.values();
      expect(port?.frontends.map(({ address }) => address)).not.toContain(router);
      expect(port?.leftToRoute).toEqual([{ kind: 'loadBalancerIP', address: router, port: 80 }]);
      expect(outcomes(table, router)).toEqual(['pass', 'pass', 'pass']);
    }
  });

  test.each([
    ['with an endpoint here', [here, there]],
    ['without one here', [there]],
    ['without any', []],
  ] as const)('changes no other frontend, %s', (_, endpoints) => {
    const others = (table: ForwardingTable): readonly string[] =>
      [...table.services.values()].flatMap(({ frontends }) =>
        frontends.flatMap((one) => (one.address === router ? [] : JSON.stringify(one))),
      );
    const spec = { external: policy };
    const asVip = others(tableWith(endpoints, spec, { ...on, routerIpMode: 'asVip' }));
    expect(asVip).toHaveLength(4);
    expect(others(tableWith(endpoints, spec))).toEqual(asVip);
  });
});

test('with the gate off, Router is a VIP', () => {
  const table = tableWith([there], {}, { ...on, routerIpMode: 'asVip' });
  expect(outcomes(table, router)).toEqual(outcomes(table, vip));
  expect(outcomes(table, router)).toContain('10.244.2.5 masqueraded');
});

test.each([
  [['Router', 'VIP'], 'VIP'],
  [['VIP', 'Router'], 'VIP'],
  [['Router', 'Later'], 'VIP'],
  [['Proxy', 'Router'], 'Router'],
  [['Router', 'Proxy'], 'Router'],
] as const)('an IP that the status lists as %s is taken as %s', (modes, expected) => {
  const table = tableWith([there], { loadBalancerIps: modes.map((mode) => [router, mode] as const) });
  expect(outcome(table, flow('outside', `${router}:80`))).toBe(expected === 'VIP' ? '10.244.2.5 masqueraded' : 'pass');
});

test('another place that is left to the route makes another object', () => {
  const [one, other, same] = [router, vip, router].map((ip) => {
    const [port] = tableWith([], { loadBalancerIps: [[ip, 'Router']] }).services.values();
    if (port === undefined) throw new Error('no Service');
    return port;
  });
  expect(one && other && isSameForwarding(one, other)).toBe(false);
  expect(one && same && isSameForwarding(one, same)).toBe(true);
});

test('source ranges hold at a Router IP while an endpoint is here', () => {
  const table = tableWith([here], { sourceRanges: ['10.0.0.0/8'] });
  expect(outcomes(table, router)).toEqual(['10.244.1.5', 'drop', 'drop']);
});

test('only a policy Local and Router IPs need the set of local endpoints', () => {
  const [port] = tableWith([here, there], { loadBalancerIps: [vip] }).services.values();
  expect(port?.endpoints.Local).toEqual([]);
  const [routed] = tableWith([here, there], { loadBalancerIps: [[router, 'Router']] }).services.values();
  expect(routed?.endpoints.Local).toHaveLength(1);
});

test('no other Service gets a Router IP that is left to the route', () => {
  const built = (endpoints: readonly EndpointSpec[]): ForwardingTable =>
    tableOf(
      {
        services: [
          service('shop/cart', { loadBalancerIps: [[router, 'Router']] }),
          service('shop/thief', { clusterIps: ['10.96.0.66'], externalIps: [router] }),
        ],
        slices: [slice('shop/cart', { endpoints }), slice('shop/thief', { endpoints: ['10.244.6.6'] })],
      },
      tableOptions(on),
    );
  expect(outcomes(built([here]), router)).toEqual(['10.244.1.5', '10.244.1.5', '10.244.1.5']);
  expect(outcomes(built([there]), router)).toEqual(['pass', 'pass', 'pass']);
});

test.each(testTraits)('the dataplane $name gives the same answers', (traits) => {
  const sent: readonly Flow[] = senders.map((from) => flow(from, `${router}:80`));
  const verdicts = (table: ForwardingTable): readonly string[] =>
    sent.map((one) => verdictText(explain(table, one, traits).verdict));
  expect(verdicts(tableWith([here]))).toEqual(['10.244.1.5', '10.244.1.5', '10.244.1.5']);
  expect(verdicts(tableWith([there]))).toEqual(['pass', 'pass', 'pass']);
});

describe('UDP flows to a Router IP', () => {
  const udp = { protocol: 'UDP' } as const;
  const local = tableWith([here, there], {}, on, udp);
  const remote = tableWith([there], {}, on, udp);
  const sent = {
    source: parseIp('203.0.113.9'),
    sourcePort: parsePort(40_000),
    destination: parseIp(router),
    destinationPort: parsePort(80),
  };
  const translated = { ...sent, replySource: parseIp(here.ip), replySourcePort: parsePort(8080) };
  const routed = { ...sent, replySource: parseIp(router), replySourcePort: parsePort(80) };

  test('that were translated are stale once it is left to the route', () => {
    const former = formerEndpoints(local, remote, diffTables(local, remote));
    expect(former.filter(({ endpoints }) => endpoints.size > 0).map(({ address }) => address)).toContain(router);
    const judge = flowJudge({ table: remote, isLocalAddress: () => false, former });
    expect(judge.isStale(translated)).toBe(true);
    expect(judge.isStale(routed)).toBe(false);
  });

  test('that were routed are stale once an endpoint is here', () => {
    const [before, after] = [remote, local].map((table) => [...table.services.values()][0]);
    if (after === undefined) throw new Error('no Service');
    expect(canLeaveStaleFlows(before, after)).toBe(true);
    const judge = flowJudge({ table: local, isLocalAddress: () => false });
    expect(judge.isStale(routed)).toBe(true);
    expect(judge.isStale(translated)).toBe(false);
  });
});
