import { describe, expect, test } from 'vitest';
import { parseIp } from '../../model/ip/address.ts';
import { parsePort } from '../../model/ip/port.ts';
import { serviceKey, servicePortKey } from '../../model/records/keys.ts';
import { service, slice, tableOptions } from '../../testing/builders.ts';
import { tableOf } from '../../testing/cluster.ts';
import { canLeaveStaleFlows, flowJudge, type UdpFlow } from './stale-flows.ts';

const udp = (port: number, nodePort?: number) => ({
  protocol: 'UDP' as const,
  port,
  ...(nodePort === undefined ? {} : { nodePort }),
});

const table = tableOf(
  {
    services: [
      service('kube-system/dns', {
        ports: [udp(53, 30053)],
        externalIps: ['198.51.100.5'],
        loadBalancerIps: ['198.51.100.7'],
        external: 'Local',
      }),
      service('shop/idle', { clusterIps: ['10.96.0.11'], ports: [udp(5000, 30500)] }),
      service('shop/web', { clusterIps: ['10.96.0.12'], ports: [{ port: 53, nodePort: 30080 }] }),
    ],
    slices: [
      slice('kube-system/dns', {
        ports: [udp(5353)],
        endpoints: [
          { ip: '10.244.1.1', node: 'n1' },
          { ip: '10.244.2.1', node: 'n2', terminating: true },
          { ip: '10.244.2.2', node: 'n2', ready: false, serving: false },
          { ip: '10.244.2.3', node: 'n2', terminating: true, serving: false },
        ],
      }),
      slice('shop/web', { endpoints: ['10.244.1.9'] }),
    ],
  },
  tableOptions({ nodePortCidrs: ['192.0.2.0/24'] }),
);

/** `destination -> who answers`, both `IP:port`. */
function flowOf(text: string): UdpFlow {
  const [to = '', from = ''] = text.split(' -> ');
  const [destination = '', destinationPort] = to.split(':');
  const [replySource = '', replySourcePort] = from.split(':');
  return {
    source: parseIp('203.0.113.9'),
    sourcePort: parsePort(40000),
    destination: parseIp(destination),
    destinationPort: parsePort(Number(destinationPort)),
    replySource: parseIp(replySource),
    replySourcePort: parsePort(Number(replySourcePort)),
  };
}

const local = new Set(['192.0.2.1', '10.9.9.9']);
const options = { table, isLocalAddress: (ip: string) => local.has(ip) };

describe('flowJudge', () => {
  test.each([
    ['a ready endpoint stays', '10.96.0.10:53 -> 10.244.1.1:5353', 'kept'],
    ['fact 65: a serving terminating endpoint stays', '10.96.0.10:53 -> 10.244.2.1:5353', 'kept'],
    ['fact 65: a remote endpoint stays, although policy is Local', '198.51.100.7:53 -> 10.244.2.1:5353', 'kept'],
    ['an endpoint that serves no more goes', '10.96.0.10:53 -> 10.244.2.2:5353', 'deleted'],
    ['a terminating endpoint that serves no more goes', '10.96.0.10:53 -> 10.244.2.3:5353', 'deleted'],
    ['a flow to an unknown endpoint is deleted', '10.96.0.10:53 -> 10.244.1.2:5353', 'deleted'],
    ['the right address with another port goes', '10.96.0.10:53 -> 10.244.1.1:53', 'deleted'],
    ['a flow from before the service had endpoints goes', '10.96.0.10:53 -> 10.96.0.10:53', 'deleted'],
    // Every kind of frontend.
    ['an external IP counts', '198.51.100.5:53 -> 10.244.9.9:5353', 'deleted'],
    ['a load-balancer IP counts', '198.51.100.7:53 -> 10.244.9.9:5353', 'deleted'],
    // Other than kube-proxy: zero endpoints are no excuse.
    ['fact 66, improved: a service without endpoints loses its flows', '10.96.0.11:5000 -> 10.244.1.7:5000', 'deleted'],
    [
      'fact 66, improved: a NodePort without endpoints loses its flows',
      '192.0.2.1:30500 -> 10.244.1.7:5000',
      'deleted',
    ],
    // Other than kube-proxy: NodePorts only where this node answers them.
    ['a NodePort flow to a serving endpoint stays', '192.0.2.1:30053 -> 10.244.1.1:5353', 'kept'],
    ['a NodePort flow to a dead endpoint goes', '192.0.2.1:30053 -> 10.244.9.9:5353', 'deleted'],
    [
      'fact 67, improved: a flow through this node to the same port elsewhere stays',
      '192.0.2.99:30053 -> 192.0.2.99:30053',
      'kept',
    ],
    [
      'fact 67, improved: a local address outside the NodePort ranges stays',
      '10.9.9.9:30053 -> 10.9.9.9:30053',
      'kept',
    ],
    // Everything that is not ours.
    ['fact 68: a flow to the place of a TCP service stays', '10.96.0.12:53 -> 10.244.9.9:53', 'kept'],
    ['fact 68: a flow to the NodePort of a TCP service stays', '192.0.2.1:30080 -> 192.0.2.1:30080', 'kept'],
    ['another port of a cluster IP stays', '10.96.0.10:54 -> 10.96.0.10:54', 'kept'],
    ['a flow to no frontend stays', '203.0.113.1:53 -> 203.0.113.1:53', 'kept'],
  ])('%s', (_, text, expected) => {
    expect(flowJudge(options).isStale(flowOf(text))).toBe(expected === 'deleted');
  });

  test('a service that is not in the kernel as it should be is left alone', () => {
    const flow = flowOf('10.96.0.11:5000 -> 10.244.1.7:5000');
    const except = new Set([servicePortKey(serviceKey('shop', 'idle'), '', 'UDP')]);
    expect(flowJudge({ ...options, except }).isStale(flow)).toBe(false);
  });

  test('IPv6 flows are compared with an IPv6 table', () => {
    const six = tableOf(
      {
        services: [service('kube-system/dns', { clusterIps: ['fd00:10:96::a'], ports: [udp(53)] })],
        slices: [slice('kube-system/dns', { ports: [udp(5353)], endpoints: ['fd00:10:244::1'] })],
      },
      tableOptions({ ipFamily: 'IPv6' }),
    );
    const flow = {
      ...flowOf('10.96.0.10:53 -> 10.244.1.1:5353'),
      destination: parseIp('fd00:10:96::a'),
      replySource: parseIp('fd00:10:244::1'),
    };
    const dead = { ...flow, replySource: parseIp('fd00:10:244::2') };
    expect([flow, dead].map(flowJudge({ ...options, table: six }).isStale)).toEqual([false, true]);
  });

  test('names every port a stale flow can have been sent to', () => {
    expect([...flowJudge(options).destinationPorts].sort((a, b) => a - b)).toEqual([53, 5000, 30053, 30500]);
  });

  test('no port when there is no UDP service', () => {
    const bare = tableOf({ services: [service('shop/web')] }, tableOptions());
    expect(flowJudge({ ...options, table: bare }).destinationPorts.size).toBe(0);
  });
});

describe('canLeaveStaleFlows', () => {
  const one = { ip: '10.244.1.1', node: 'n1' };
  const two = { ip: '10.244.2.1', node: 'n2' };
  type EndpointSpecs = NonNullable<NonNullable<Parameters<typeof slice>[1]>['endpoints']>;
  function dns(endpoints: EndpointSpecs, more: Parameters<typeof service>[1] = {}) {
    const protocol = (more.ports?.[0]?.protocol ?? 'UDP') as 'UDP';
    const built = tableOf(
      {
        services: [service('kube-system/dns', { ports: [udp(53)], ...more })],
        slices: [slice('kube-system/dns', { ports: [{ ...udp(5353), protocol }], endpoints })],
      },
      tableOptions(),
    );
    return [...built.services.values()][0]!;
  }

  test.each([
    ['an endpoint more leaves none', dns([one]), dns([one, two]), false],
    ['an endpoint less may', dns([one, two]), dns([one]), true],
    ['an endpoint replaced may', dns([one]), dns([two]), true],
    ['terminating and still serving leaves none', dns([one, two]), dns([{ ...one, terminating: true }, two]), false],
    ['serving no more may', dns([one, two]), dns([{ ...one, ready: false, serving: false }, two]), true],
    ['the first endpoint may: flows began without one', dns([]), dns([one]), true],
    ['the last endpoint gone may', dns([one]), dns([]), true],
    [
      'fact 64, improved: a new address of the service may',
      dns([one]),
      dns([one], { externalIps: ['198.51.100.5'] }),
      true,
    ],
    ['an address less leaves none', dns([one], { externalIps: ['198.51.100.5'] }), dns([one]), false],
    ['fact 64, improved: a new NodePort may', dns([one]), dns([one], { ports: [udp(53, 30053)] }), true],
    ['an unknown service may', undefined, dns([one]), true],
    ['fact 68: TCP never does', undefined, dns([one], { ports: [{ protocol: 'TCP', port: 53 }] }), false],
  ])('%s', (_, before, after, expected) => {
    expect(canLeaveStaleFlows(before, after)).toBe(expected);
  });
});
