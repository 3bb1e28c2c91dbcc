import { cidrContains, type IpAddress, ipFamilyOf, parseCidr, parseIp } from '@switchyard/core';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LoadBalancerSpec, PortSpec } from '../spec/load-balancer-spec.ts';
import { lbNode, lbService } from '../testing/builders.ts';
import { lbSlice, planOf, type PlanInput } from '../testing/plan-input.ts';
import type { AddressSource } from './ip-pool.ts';

// Small pools, so that Services meet at addresses and ports, and endpoints at nodes that are left out.
const names = ['ns/a', 'ns/b', 'other/a', 'other/c'];
const nodeNames = ['n1', 'n2', 'n3'];
const address = (node: string, family: '4' | '6'): string =>
  family === '4' ? `172.18.0.1${node.slice(1)}` : `fd00:172:18::1${node.slice(1)}`;
const families = fc.constantFrom<string[]>(['IPv4'], ['IPv6'], ['IPv4', 'IPv6'], ['IPv6', 'IPv4']);
const maybe = <T>(values: readonly T[]): fc.Arbitrary<T | undefined> => fc.constantFrom(undefined, ...values);

const anyPort = fc.record({
  port: fc.constantFrom(80, 81),
  protocol: fc.constantFrom('TCP', 'UDP'),
  nodePort: fc.constantFrom(undefined, 30080, 30081),
});
const anyAnnotations = fc.record(
  {
    'lb.switchyard.dev/path': fc.constantFrom('proxy', 'transparent', 'wrong'),
    'lb.switchyard.dev/fast-drain': fc.constantFrom('true', 'false'),
    'lb.switchyard.dev/health-check-fall': fc.constantFrom('1', '0'),
  },
  { requiredKeys: [] },
);
const anyService = fc
  .record({
    key: fc.constantFrom(...names),
    createdAt: fc.constantFrom('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'),
    isBeingDeleted: fc.constantFrom(false, false, true),
    annotations: anyAnnotations,
    ipFamilies: families,
    isLocal: fc.boolean(),
    loadBalancerIP: maybe(['172.18.255.1', '172.18.255.2', '172.18.255.3', 'fd00::99', 'nonsense']),
    shown: maybe(['172.18.255.1', '172.18.255.2', 'fd00:172:18:ff::1']),
    ranges: fc.uniqueArray(fc.constantFrom('10.0.0.0/8', '192.0.2.0/24', 'fd00::/8'), { maxLength: 2 }),
    ports: fc.uniqueArray(anyPort, {
      minLength: 1,
      maxLength: 3,
      selector: ({ port, protocol }) => `${port}/${protocol}`,
    }),
  })
  .map(({ key, createdAt, isBeingDeleted, annotations, shown, isLocal, ports, ranges, loadBalancerIP, ipFamilies }) =>
    lbService(key, {
      createdAt,
      isBeingDeleted,
      metadata: { annotations },
      spec: {
        ipFamilies,
        ...(loadBalancerIP === undefined ? {} : { loadBalancerIP }),
        loadBalancerSourceRanges: ranges,
        externalTrafficPolicy: isLocal ? 'Local' : 'Cluster',
        ...(isLocal ? { healthCheckNodePort: 32080 } : {}),
        ports: ports.map(({ nodePort, ...port }, index) => ({
          name: `p${index}`,
          ...port,
          ...(nodePort === undefined ? {} : { nodePort }),
        })),
      },
      ...(shown === undefined ? {} : { status: { loadBalancer: { ingress: [{ ip: shown, ipMode: 'Proxy' }] } } }),
    }),
  );
const anyNode = fc
  .record({ name: fc.constantFrom(...nodeNames), has: families, isExcluded: fc.boolean(), hasCidr: fc.boolean() })
  .map(({ name, has, isExcluded, hasCidr }) =>
    lbNode(
      name,
      [...(has.includes('IPv4') ? [address(name, '4')] : []), ...(has.includes('IPv6') ? [address(name, '6')] : [])],
      {
        metadata: isExcluded ? { labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } } : {},
        ...(hasCidr ? { spec: { podCIDRs: [`10.244.${name.slice(1)}.0/24`] } } : {}),
      },
    ),
  );
const anyEndpoint = fc
  .record({
    ip: fc.constantFrom('10.244.1.5', '10.244.2.5', '10.244.3.5', '172.18.0.11'),
    node: fc.constantFrom('', ...nodeNames.map((name) => `@${name}`)),
    state: fc.constantFrom('', ' unready', ' terminating'),
  })
  .map(({ ip, node, state }) => `${ip}${node}${state}`);
const anySlice = fc
  .record({
    service: fc.constantFrom(...names),
    endpoints: fc.array(anyEndpoint, { minLength: 1, maxLength: 4 }),
    port: fc.constantFrom(8080, 8081),
    name: fc.constantFrom('p0', 'p1'),
  })
  .map(({ service, endpoints, port, name }) => lbSlice(service, endpoints, port, name));
const anySource: fc.Arbitrary<AddressSource> = fc.constantFrom<AddressSource>(
  { kind: 'pool', cidrs: ['172.18.255.0/29', 'fd00:172:18:ff::/112'].map(parseCidr) },
  { kind: 'pool', cidrs: ['172.18.255.0/30'].map(parseCidr), reserved: [parseIp('172.18.255.1')] },
  { kind: 'shared', addresses: ['172.18.255.1', 'fd00:172:18:ff::1'].map(parseIp) },
);
const anyCluster: fc.Arbitrary<PlanInput> = fc.record({
  services: fc.uniqueArray(anyService, { maxLength: 4, selector: ({ record }) => record.key }),
  nodes: fc.uniqueArray(anyNode, { maxLength: 3, selector: ({ name }) => name }),
  slices: fc.uniqueArray(anySlice, { maxLength: 5, selector: ({ key }) => key }),
  source: anySource,
});

const specsOf = (input: PlanInput): readonly LoadBalancerSpec[] =>
  planOf(input).flatMap(({ planned }) => (planned.status === 'run' ? [planned.spec] : []));

test('equal state in any order gives equal plans', () => {
  const shuffled = fc.tuple(anyCluster, fc.infiniteStream(fc.nat(1000))).map(([input, keys]) => {
    const shuffle = <T>(list: readonly T[]): readonly T[] =>
      list
        .map((item) => ({ item, key: Number(keys.next().value) }))
        .sort((a, b) => a.key - b.key)
        .map(({ item }) => item);
    const other: PlanInput = {
      ...input,
      services: shuffle(input.services).map((service) => ({
        ...service,
        record: { ...service.record, ports: shuffle(service.record.ports) },
        annotations: Object.fromEntries(shuffle(Object.entries(service.annotations))),
      })),
      nodes: shuffle(input.nodes),
      slices: shuffle(input.slices ?? []).map((slice) => ({ ...slice, endpoints: shuffle(slice.endpoints) })),
    };
    return [input, other] as const;
  });
  fc.assert(
    fc.property(shuffled, ([input, other]) => {
      const withoutOrder = (one: PlanInput): unknown =>
        planOf(one).map((each) => ({ ...each, service: each.service.record.key }));
      expect(withoutOrder(other)).toEqual(withoutOrder(input));
    }),
    { numRuns: 300, seed: 6 },
  );
});

const placesOf = ({ ports, id }: LoadBalancerSpec): readonly string[] =>
  ports.flatMap(({ port, protocol, addresses }) => addresses.map((ip) => `${ip} ${port}/${protocol} ${id.service}`));
const familyTargets = ({ targets }: PortSpec, family: string): PortSpec['targets'] =>
  targets.filter((target) => ipFamilyOf(target.address) === family);

test('in any cluster, specs can be run', () => {
  fc.assert(
    fc.property(anyCluster, (input) => {
      const specs = specsOf(input);
      const places = specs.flatMap(placesOf).map((place) => place.slice(0, place.lastIndexOf(' ')));
      expect(new Set(places).size).toBe(places.length); // no place is used twice
      const all = specs.flatMap(({ addresses }) => addresses);
      if (input.source.kind === 'pool') expect(new Set(all).size).toBe(all.length);
      const reserved: readonly IpAddress[] = input.source.kind === 'pool' ? (input.source.reserved ?? []) : [];
      expect(all.filter((ip) => reserved.includes(ip))).toEqual([]);
      for (const spec of specs) {
        for (const port of spec.ports) {
          for (const family of ['IPv4', 'IPv6']) {
            const targets = familyTargets(port, family);
            const targetNames = targets.map(({ name }) => name);
            expect(targetNames).toEqual([...new Set(targetNames)].sort());
            if (targets.some(({ draining }) => draining !== 'no')) {
              expect(targets.some(({ draining }) => draining === 'no')).toBe(true);
            }
            if (!port.addresses.some((ip) => ipFamilyOf(ip) === family)) expect(targets).toEqual([]);
          }
          for (const target of port.targets) {
            const isOnNode = target.address === target.check.address || target.address.startsWith('172.18.');
            const routes = spec.routes.filter(({ destination }) => cidrContains(destination, target.address));
            if (!isOnNode) expect(routes.length).toBeGreaterThan(0);
          }
        }
      }
    }),
    { numRuns: 300, seed: 7 },
  );
});
