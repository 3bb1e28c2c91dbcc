import type { V1EndpointSlice, V1Node, V1Service } from '@kubernetes/client-node';
import { describe, expect, test } from 'vitest';
import {
  newProjectionContext,
  projections,
  recordFromEndpointSlice,
  recordFromNode,
  recordFromService,
  recordFromServiceCidr,
  type Projected,
  type SkippedPart,
} from './to-records.ts';

/** Objects as the wire has them: nulls, missing parts and wrong types included. */
function raw<T>(value: unknown): T {
  return value as T;
}

function recordOf<T>(projected: Projected<T>): T {
  if (projected.status === 'ignored') throw new Error(`ignored: ${projected.reason}`);
  return projected.record;
}

function service(spec: unknown, rest: object = {}): V1Service {
  return raw({ metadata: { namespace: 'shop', name: 'cart' }, spec, ...rest });
}

function slice(fields: object): V1EndpointSlice {
  return raw({
    metadata: { namespace: 'shop', name: 'cart-x1', labels: { 'kubernetes.io/service-name': 'cart' } },
    addressType: 'IPv4',
    endpoints: [],
    ports: [],
    ...fields,
  });
}

describe('Service', () => {
  test('every field the dataplane uses is read', () => {
    const record = recordOf(
      recordFromService(
        raw({
          metadata: { namespace: 'shop', name: 'cart', labels: { 'service.kubernetes.io/service-proxy-name': '' } },
          spec: {
            type: 'LoadBalancer',
            clusterIP: '10.96.0.10',
            clusterIPs: ['10.96.0.10', 'FD00:0::10'],
            ipFamilies: ['IPv4', 'IPv6'],
            ports: [
              { name: 'http', port: 80, nodePort: 30080, protocol: 'TCP' },
              { name: 'dns', port: 53, protocol: 'UDP' },
            ],
            externalTrafficPolicy: 'Local',
            internalTrafficPolicy: 'Local',
            healthCheckNodePort: 31000,
            sessionAffinity: 'ClientIP',
            sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
          },
        }),
      ),
    );
    expect(record).toEqual({
      key: 'shop/cart',
      type: 'LoadBalancer',
      clusterIps: ['10.96.0.10', 'fd00::10'],
      isHeadless: false,
      ipFamilies: ['IPv4', 'IPv6'],
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, nodePort: 30080 },
        { name: 'dns', protocol: 'UDP', port: 53, nodePort: undefined },
      ],
      externalIps: [],
      loadBalancerIngress: [],
      loadBalancerSourceRanges: [],
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Local',
      healthCheckNodePort: 31000,
      sessionAffinity: { kind: 'clientIP', timeout: 60_000 },
      serviceProxyName: '',
    });
  });

  test.each([
    ['an absent spec', undefined],
    ['a null spec', null],
    ['an empty spec', {}],
    [
      'explicit nulls',
      { clusterIPs: null, ports: null, externalIPs: null, ipFamilies: null, sessionAffinityConfig: null },
    ],
  ])('%s gives a record with defaults', (_, spec) => {
    expect(recordOf(recordFromService(service(spec)))).toMatchObject({
      type: 'ClusterIP',
      clusterIps: [],
      isHeadless: false,
      ipFamilies: [],
      ports: [],
      externalTrafficPolicy: 'Cluster',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: { kind: 'none' },
      serviceProxyName: undefined,
    });
  });

  test('ClientIP affinity without a timeout lasts three hours', () => {
    const record = recordOf(recordFromService(service({ sessionAffinity: 'ClientIP' })));
    expect(record.sessionAffinity).toEqual({ kind: 'clientIP', timeout: 10_800_000 });
  });

  test.each([
    ['LoadBalancer, Local', 'LoadBalancer', 'Local', 31000],
    ['LoadBalancer, Cluster', 'LoadBalancer', 'Cluster', undefined],
    ['NodePort, Local', 'NodePort', 'Local', undefined],
  ])('healthCheckNodePort of %s', (_, type, externalTrafficPolicy, expected) => {
    const record = recordOf(recordFromService(service({ type, externalTrafficPolicy, healthCheckNodePort: 31000 })));
    expect(record.healthCheckNodePort).toBe(expected);
  });

  test.each([
    ['clusterIP None', { clusterIP: 'None', clusterIPs: ['None'] }],
    ['clusterIPs None only', { clusterIPs: ['None'] }],
  ])('%s is headless and has no address', (_, spec) => {
    expect(recordOf(recordFromService(service(spec)))).toMatchObject({ isHeadless: true, clusterIps: [] });
  });

  test('a second cluster IP of the same family is left out', () => {
    const record = recordOf(recordFromService(service({ clusterIPs: ['10.96.0.1', '10.96.0.2', 'fd00::1'] })));
    expect(record.clusterIps).toEqual(['10.96.0.1', 'fd00::1']);
  });

  test('ports without a usable number or with an unknown protocol are left out and named', () => {
    const skipped: SkippedPart[] = [];
    const record = recordOf(
      recordFromService(
        service({ ports: [{ port: 0 }, { port: 80, protocol: 'DCCP' }, { port: 443, nodePort: 0 }] }),
        newProjectionContext((part) => skipped.push(part)),
      ),
    );
    expect(record.ports).toEqual([{ name: '', protocol: 'TCP', port: 443, nodePort: undefined }]);
    expect(skipped.map((part) => part.path)).toEqual(['spec.ports[0]', 'spec.ports[1]']);
  });

  test('fact 19: white space around source ranges is tolerated, zero-length CIDRs are kept as written', () => {
    const record = recordOf(
      recordFromService(service({ loadBalancerSourceRanges: [' 10.0.0.0/8', '0.0.0.0/0\t', '  2001:DB8::/32  '] })),
    );
    expect(record.loadBalancerSourceRanges).toEqual(['10.0.0.0/8', '0.0.0.0/0', '2001:db8::/32']);
  });

  test.each([
    ['10.020.0.0/016', '10.20.0.0/16'],
    ['010.0.0.0/8', '10.0.0.0/8'],
    ['000.000.000.000/00', '0.0.0.0/0'],
    ['100.64.0.0/10', '100.64.0.0/10'],
    ['2001:0db8::/032', '2001:db8::/32'],
    ['0064:ff9b::/96', '64:ff9b::/96'],
  ])('leading zeros in the source range %s mean nothing, as they did to older API servers', (written, expected) => {
    const skipped: SkippedPart[] = [];
    const context = newProjectionContext((part) => skipped.push(part));
    const record = recordOf(recordFromService(service({ loadBalancerSourceRanges: [written] }), context));
    expect(record.loadBalancerSourceRanges).toEqual([expected]);
    expect(skipped).toEqual([]);
  });

  test.each([
    ['no mode', undefined, 'VIP'],
    ['null', null, 'VIP'],
    ['VIP', 'VIP', 'VIP'],
    ['Proxy', 'Proxy', 'Proxy'],
    ['an unknown mode', 'vip', 'vip'],
  ])('fact 24: an ingress IP with %s', (_, ipMode, expected) => {
    const status = { loadBalancer: { ingress: [{ ip: '198.51.100.7', ipMode }] } };
    const record = recordOf(recordFromService(service({}, { status })));
    expect(record.loadBalancerIngress).toEqual([{ ip: '198.51.100.7', ipMode: expected }]);
  });

  test('ingress entries without an IP are left out silently, broken ones are named', () => {
    const skipped: SkippedPart[] = [];
    const ingress = [{ hostname: 'lb.example' }, { ip: '' }, { ip: '198.51.100.7' }, { ip: '198.51.100.300' }];
    const record = recordOf(
      recordFromService(
        service({}, { status: { loadBalancer: { ingress } } }),
        newProjectionContext((part) => skipped.push(part)),
      ),
    );
    expect(record.loadBalancerIngress).toEqual([{ ip: '198.51.100.7', ipMode: 'VIP' }]);
    expect(skipped.map((part) => part.value)).toEqual([{ ip: '198.51.100.300' }]);
  });

  test.each([
    ['IPv4', '10.96.0.10', ['IPv4']],
    ['IPv6', 'fd00::10', ['IPv6']],
  ])('fact 25: a legacy Service without ipFamilies follows its %s clusterIP', (_, clusterIP, families) => {
    const record = recordOf(recordFromService(service({ clusterIP })));
    expect(record).toMatchObject({ clusterIps: [clusterIP], ipFamilies: families });
  });

  test('fact 26: invalid external IPs are skipped and named by path, empty ones silently', () => {
    const skipped: SkippedPart[] = [];
    const record = recordOf(
      recordFromService(
        service({ externalIPs: ['', '192.0.2.1', '192.0.2.256', 'FE80::1%eth0', '2001:DB8::1'] }),
        newProjectionContext((part) => skipped.push(part)),
      ),
    );
    expect(record.externalIps).toEqual(['192.0.2.1', '2001:db8::1']);
    expect(skipped).toEqual([
      { resource: 'Service', name: 'shop/cart', path: 'spec.externalIPs[2]', value: '192.0.2.256' },
      { resource: 'Service', name: 'shop/cart', path: 'spec.externalIPs[3]', value: 'FE80::1%eth0' },
    ]);
  });
});

describe('EndpointSlice', () => {
  test.each([
    ['no conditions', undefined, [true, true, false]],
    ['null conditions', null, [true, true, false]],
    ['empty conditions', {}, [true, true, false]],
    ['null in each condition', { ready: null, serving: null, terminating: null }, [true, true, false]],
    ['ready false alone', { ready: false }, [false, true, false]],
    ['serving and terminating', { ready: false, serving: true, terminating: true }, [false, true, true]],
    ['terminating alone', { terminating: true }, [true, true, true]],
    ['nothing true', { ready: false, serving: false, terminating: false }, [false, false, false]],
  ])('fact 1: %s', (_, conditions, [ready, serving, terminating]) => {
    const record = recordOf(recordFromEndpointSlice(slice({ endpoints: [{ addresses: ['10.244.1.5'], conditions }] })));
    expect(record.endpoints[0]).toMatchObject({ ready, serving, terminating });
  });

  test('fact 12: only the first address of an endpoint is used', () => {
    const record = recordOf(
      recordFromEndpointSlice(slice({ endpoints: [{ addresses: ['10.244.1.5', '10.244.1.6'] }] })),
    );
    expect(record.endpoints.map((endpoint) => endpoint.address)).toEqual(['10.244.1.5']);
  });

  test('fact 12: an address of the other family, a broken one and none at all are left out', () => {
    const endpoints = [
      { addresses: ['fd00::1'] },
      { addresses: ['pod-7'] },
      { addresses: [] },
      { addresses: ['10.0.0.1'] },
    ];
    const record = recordOf(recordFromEndpointSlice(slice({ endpoints })));
    expect(record.endpoints.map((endpoint) => endpoint.address)).toEqual(['10.0.0.1']);
  });

  test('fact 12: an FQDN slice is ignored', () => {
    expect(recordFromEndpointSlice(slice({ addressType: 'FQDN' }))).toEqual({
      status: 'ignored',
      name: 'shop/cart-x1',
      reason: 'addressType',
    });
  });

  test('fact 13: ports without a name, without a number or with number 0 are ignored', () => {
    const ports = [
      { port: 80 },
      { name: null, port: 80 },
      { name: 'a' },
      { name: 'b', port: null },
      { name: 'c', port: 0 },
    ];
    const record = recordOf(
      recordFromEndpointSlice(slice({ ports: [...ports, { name: '', port: 80, protocol: null }] })),
    );
    expect(record.ports).toEqual([{ name: '', protocol: 'TCP', port: 80 }]);
  });

  test.each([
    ['no labels', undefined],
    ['null labels', null],
    ['an empty label', { 'kubernetes.io/service-name': '' }],
  ])('fact 14: a slice with %s is ignored with any owner', (_, labels) => {
    const metadata = { namespace: 'shop', name: 'x', labels, ownerReferences: [{ kind: 'Service', name: 'cart' }] };
    expect(recordFromEndpointSlice(slice({ metadata }))).toMatchObject({ status: 'ignored', reason: 'noServiceName' });
  });

  test('a slice labelled headless is ignored, as the server-side selector would', () => {
    const labels = { 'kubernetes.io/service-name': 'cart', 'service.kubernetes.io/headless': '' };
    const projected = recordFromEndpointSlice(slice({ metadata: { namespace: 'shop', name: 'x', labels } }));
    expect(projected).toMatchObject({ status: 'ignored', reason: 'headless' });
  });

  test('hints, node and trigger time are read', () => {
    const record = recordOf(
      recordFromEndpointSlice(
        slice({
          metadata: {
            namespace: 'shop',
            name: 'cart-x1',
            labels: { 'kubernetes.io/service-name': 'cart' },
            annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-11-21T01:42:39Z' },
          },
          endpoints: [
            {
              addresses: ['10.244.1.5'],
              nodeName: 'n1',
              hints: { forZones: [{ name: 'z1' }, { name: 'z2' }], forNodes: [{ name: 'n1' }] },
            },
            { addresses: ['10.244.1.6'], nodeName: null, hints: null },
          ],
        }),
      ),
    );
    expect(record.lastChangeTriggerTime).toBe(Date.parse('2026-11-21T01:42:39Z'));
    expect(record.endpoints).toMatchObject([
      { nodeName: 'n1', zoneHints: ['z1', 'z2'], nodeHints: ['n1'] },
      { nodeName: undefined, zoneHints: [], nodeHints: [] },
    ]);
  });
});

describe('Node', () => {
  test('zone, addresses with internal ones first, and pod CIDRs are read', () => {
    const node: V1Node = raw({
      metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'z1' } },
      spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'fd00:1::/64'] },
      status: {
        addresses: [
          { type: 'Hostname', address: 'n1' },
          { type: 'ExternalIP', address: '203.0.113.1' },
          { type: 'InternalIP', address: '192.0.2.1' },
        ],
      },
    });
    expect(recordOf(recordFromNode(node))).toEqual({
      name: 'n1',
      zone: 'z1',
      addresses: ['192.0.2.1', '203.0.113.1'],
      podCidrs: ['10.244.1.0/24', 'fd00:1::/64'],
      isEligible: true,
    });
  });

  test.each([
    ['a plain node', {}, {}, true],
    ['null taints', {}, { taints: null }, true],
    ['another taint', {}, { taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] }, true],
    ['the autoscaler taint', {}, { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] }, false],
    ['a node being deleted', { deletionTimestamp: '2026-11-21T01:42:39Z' }, {}, false],
  ])('eligibility of %s (KEP-3836)', (_, metadata, spec, expected) => {
    expect(recordOf(recordFromNode(raw({ metadata: { name: 'n1', ...metadata }, spec }))).isEligible).toBe(expected);
  });

  test('an old Node with podCIDR alone has that one', () => {
    const record = recordOf(recordFromNode(raw({ metadata: { name: 'n1' }, spec: { podCIDR: '10.1.0.0/24' } })));
    expect(record.podCidrs).toEqual(['10.1.0.0/24']);
  });
});

test('a ServiceCIDR keeps its valid ranges', () => {
  const object = { metadata: { name: 'kubernetes' }, spec: { cidrs: ['10.96.0.0/12', 'nonsense', 'fd00::/108'] } };
  expect(recordOf(recordFromServiceCidr(raw(object)))).toEqual({
    name: 'kubernetes',
    cidrs: ['10.96.0.0/12', 'fd00::/108'],
  });
});

test.each(['Service', 'EndpointSlice', 'Node', 'ServiceCIDR'] as const)('a %s without a name is ignored', (kind) => {
  expect(projections[kind](raw({}))).toEqual({ status: 'ignored', name: '', reason: 'unnamed' });
});

test('a list that is a text is malformed, and only that object', () => {
  expect(recordFromService(service({ ports: 'http' }))).toEqual({
    status: 'ignored',
    name: 'shop/cart',
    reason: 'malformed',
  });
});

test('empty lists are one object in memory', () => {
  const first = recordOf(recordFromEndpointSlice(slice({ endpoints: [{ addresses: ['10.0.0.1'] }] })));
  const second = recordOf(recordFromEndpointSlice(slice({ endpoints: [{ addresses: ['10.0.0.2'], hints: null }] })));
  expect(first.ports).toBe(second.ports);
  expect(first.endpoints[0]?.zoneHints).toBe(second.endpoints[0]?.nodeHints);
});

test('equal lists of ports are one object in memory, different ones are not', () => {
  const context = newProjectionContext();
  const ports = (raw: readonly object[]): unknown =>
    recordOf(recordFromService(service({ ports: raw }), context)).ports;
  const slicePorts = (raw: readonly object[]): unknown =>
    recordOf(recordFromEndpointSlice(slice({ ports: raw }), context)).ports;
  const http = { name: 'http', port: 80 };
  expect(ports([http])).toBe(ports([{ ...http, protocol: 'TCP', nodePort: 0 }]));
  expect(ports([http])).not.toBe(ports([{ ...http, nodePort: 30080 }]));
  expect(
    ports([
      { name: 'a', port: 1 },
      { name: 'b', port: 2 },
    ]),
  ).not.toBe(
    ports([
      { name: 'b', port: 2 },
      { name: 'a', port: 1 },
    ]),
  );
  expect(slicePorts([http])).toBe(slicePorts([http]));
  expect(slicePorts([http])).not.toBe(ports([http]));
});
