import { describe, expect, test } from 'vitest';
import { parseCidr } from '../ip/cidr.ts';
import { nodeName, serviceKey } from '../records/keys.ts';
import { ClusterState, dirtyServices } from '../state/cluster-state.ts';
import {
  type ClusterSpec,
  eventsBetween,
  node,
  replaceAll,
  service,
  serviceCidr,
  type ServiceSpec,
  slice,
  stateOf,
  tableOf,
  tableOptions,
} from '../../testing/index.ts';
import { buildTable } from './build-table.ts';
import { diffTables, isEmptyDelta } from './build-table.ts';
import type { ForwardingTable } from './forwarding-table.ts';

const options = tableOptions();
const ports = (table: ForwardingTable): readonly string[] => [...table.services.keys()];
const frontends = (table: ForwardingTable, key: string): readonly string[] =>
  [...table.services.values()]
    .filter((port) => port.key === key)
    .flatMap((port) => port.frontends.map((frontend) => `${frontend.kind} ${frontend.address}:${frontend.port}`));

describe('which Services are in a table', () => {
  test.each<readonly [string, ServiceSpec, number]>([
    ['a ClusterIP Service', {}, 1],
    ['a headless one', { isHeadless: true }, 0],
    ['ExternalName, even with a lingering cluster IP', { type: 'ExternalName' }, 0],
    ['one that names another proxy', { serviceProxyName: 'other' }, 0],
    ['one that names another proxy by an empty name', { serviceProxyName: '' }, 0],
    ['one of the other family only', { clusterIps: ['fd00:10:96::1'], externalIps: ['203.0.113.1'] }, 0],
  ])('%s', (_, spec, count) => {
    const table = tableOf({ services: [service('ns/svc', spec)] });
    expect(table.services.size).toBe(count);
  });

  test('a cluster IP whose family the Service does not list does not count', () => {
    const legacy = { ...service('ns/svc'), ipFamilies: ['IPv6'] as const };
    expect(tableOf({ services: [legacy] }).services.size).toBe(0);
  });
});

test('each Service port is an entry of its own, in key order', () => {
  const table = tableOf({
    services: [
      service('ns/b', { clusterIps: ['10.96.0.2'], ports: [{ name: 'x' }, { name: 'x', protocol: 'UDP' }] }),
      service('ns/a', { ports: [{ name: 'y', port: 81 }, { name: 'x' }] }),
      service('ns/a-b', { clusterIps: ['10.96.0.3'] }),
    ],
  });
  expect(ports(table)).toEqual(['ns/a-b:/TCP', 'ns/a:x/TCP', 'ns/a:y/TCP', 'ns/b:x/TCP', 'ns/b:x/UDP']);
});

test('a port that a file lists twice is taken once, the first time', () => {
  const table = tableOf({ services: [service('ns/a', { ports: [{ port: 80 }, { port: 81 }] })] });
  expect(frontends(table, 'ns/a:/TCP')).toEqual(['clusterIP 10.96.0.10:80']);
});

test('frontends come by kind, then by address, each address in its first role', () => {
  const table = tableOf({
    services: [
      service('ns/a', {
        ports: [{ nodePort: 30080 }],
        loadBalancerIps: ['198.51.100.10', '198.51.100.9', '10.96.0.10', '2001:db8::1'],
        externalIps: ['203.0.113.5', '198.51.100.9', '203.0.113.5'],
      }),
    ],
  });
  expect(frontends(table, 'ns/a:/TCP')).toEqual([
    'clusterIP 10.96.0.10:80',
    'loadBalancerIP 198.51.100.9:80',
    'loadBalancerIP 198.51.100.10:80',
    'externalIP 203.0.113.5:80',
    'nodePort anyNodePortAddress:30080',
  ]);
});

test('slice ports are matched by name and protocol, slice by slice', () => {
  const table = tableOf({
    services: [service('ns/a', { ports: [{ name: 'x' }, { name: 'x', protocol: 'UDP' }, { name: 'y', port: 81 }] })],
    slices: [
      slice('ns/a', {
        ports: [
          { name: 'x', port: 9000 },
          { name: 'x', protocol: 'UDP', port: 53 },
        ],
        endpoints: ['10.244.1.10'],
      }),
      slice('ns/a', { name: 'a-2', ports: [{ name: 'x', port: 9001 }], endpoints: ['10.244.1.9', '10.244.1.10'] }),
    ],
  });
  const endpoints = [...table.services.values()].map((port) =>
    [port.key, ...port.endpoints.Cluster.map((endpoint) => `${endpoint.address}:${endpoint.port}`)].join(' '),
  );
  expect(endpoints).toEqual([
    'ns/a:x/TCP 10.244.1.9:9001 10.244.1.10:9000 10.244.1.10:9001',
    'ns/a:x/UDP 10.244.1.10:53',
    'ns/a:y/TCP',
  ]);
});

describe('of Services that claim the same place,', () => {
  const place = '203.0.113.5';
  test.each<readonly [string, ServiceSpec, ServiceSpec, 'a' | 'b']>([
    ['a cluster IP beats an external IP', { externalIps: [place] }, { clusterIps: [place] }, 'b'],
    ['a cluster IP beats a load-balancer IP', { loadBalancerIps: [place] }, { clusterIps: [place] }, 'b'],
    ['a load-balancer IP beats an external IP', { externalIps: [place] }, { loadBalancerIps: [place] }, 'b'],
    ['the lower key wins between equals', { externalIps: [place] }, { externalIps: [place] }, 'a'],
  ])('%s', (_, a, b, winner) => {
    const services = [service('ns/a', a), service('ns/b', { clusterIps: ['10.96.0.11'], ...b })];
    const table = tableOf({ services });
    const owners = [...table.services.values()].filter((port) => port.frontends.some((f) => f.address === place));
    expect(owners.map((port) => port.key)).toEqual([`ns/${winner}:/TCP`]);
    const loser = [...table.services.values()].find((port) => port.lostFrontends.length > 0);
    expect(loser?.lostFrontends).toMatchObject([{ frontend: { address: place }, winner: `ns/${winner}:/TCP` }]);
  });

  test('the same address with another port or protocol is another place', () => {
    const services = [
      service('ns/a', { externalIps: [place], ports: [{ port: 80 }] }),
      service('ns/b', { clusterIps: ['10.96.0.11'], externalIps: [place], ports: [{ port: 81 }] }),
      service('ns/c', { clusterIps: ['10.96.0.12'], externalIps: [place], ports: [{ protocol: 'UDP' }] }),
    ];
    for (const port of tableOf({ services }).services.values()) expect(port.lostFrontends).toEqual([]);
  });

  test('the loser gets it when the winner goes, and loses it when the winner comes back', () => {
    const both: ClusterSpec = {
      services: [
        service('ns/a', { externalIps: [place] }),
        service('ns/b', { clusterIps: ['10.96.0.11'], externalIps: [place, '203.0.113.4'] }),
      ],
    };
    const alone: ClusterSpec = { services: both.services?.slice(1) ?? [] };
    const state = stateOf(both);
    const first = buildTable(state, 'all', undefined, options);
    const second = buildTable(state, dirtyServices(state.apply(eventsBetween(both, alone))), first, options);
    expect(diffTables(first, second)).toMatchObject({ upserted: [{ key: 'ns/b:/TCP' }], removed: ['ns/a:/TCP'] });
    expect(frontends(second, 'ns/b:/TCP')).toEqual([
      'clusterIP 10.96.0.11:80',
      'externalIP 203.0.113.4:80',
      `externalIP ${place}:80`,
    ]);
    const third = buildTable(state, dirtyServices(state.apply(eventsBetween(alone, both))), second, options);
    expect([...third.services]).toEqual([...first.services]);
  });
});

describe('one change', () => {
  const many: ClusterSpec = {
    services: Array.from({ length: 300 }, (_, index) =>
      service(`ns/s${index}`, { clusterIps: [`10.96.${index >> 8}.${index & 255}`] }),
    ),
    slices: Array.from({ length: 300 }, (_, index) => slice(`ns/s${index}`, { endpoints: ['10.244.1.1'] })),
  };

  test('replaces one service and keeps the others', () => {
    const state = stateOf(many);
    const before = buildTable(state, 'all', undefined, options);
    const item = slice('ns/s42', { endpoints: ['10.244.1.1', '10.244.1.2'] });
    const dirty = state.apply([{ kind: 'upsert', resource: 'EndpointSlice', item }]);
    const after = buildTable(state, dirtyServices(dirty), before, options);
    expect(diffTables(before, after)).toMatchObject({
      upserted: [{ key: 'ns/s42:/TCP' }],
      removed: [],
      settingsChanged: false,
    });
    expect(after.generation).toBe(before.generation + 1);
    const changed = [...after.services].filter(([key, port]) => before.services.get(key) !== port);
    expect(changed.map(([key]) => key)).toEqual(['ns/s42:/TCP']);
  });

  test('fact 47: that is undone before the build leaves the table as it is', () => {
    const state = stateOf(many);
    const before = buildTable(state, 'all', undefined, options);
    const item = service('ns/s7', { clusterIps: ['10.96.0.7'] });
    const dirty = state.apply([
      { kind: 'delete', resource: 'Service', name: 'ns/s7' },
      { kind: 'upsert', resource: 'Service', item },
    ]);
    expect(dirty.services.size).toBe(1);
    expect(buildTable(state, dirtyServices(dirty), before, options)).toBe(before);
  });

  test('a difference over several builds is the difference of their ends', () => {
    const state = stateOf(many);
    const first = buildTable(state, 'all', undefined, options);
    let table = first;
    for (const name of ['ns/s1', 'ns/s299', 'ns/s1']) {
      const dirty = state.apply([{ kind: 'delete', resource: 'Service', name }]);
      table = buildTable(state, dirtyServices(dirty), table, options);
    }
    expect(diffTables(first, table)).toEqual({
      upserted: [],
      removed: ['ns/s1:/TCP', 'ns/s299:/TCP'],
      settingsChanged: false,
    });
  });
});

describe('a Service that changes in nothing but', () => {
  const before: ServiceSpec = { ports: [{ nodePort: 30080 }], affinitySeconds: 10 };
  test.each<readonly [string, ServiceSpec]>([
    ['its affinity', { ...before, affinitySeconds: 11 }],
    ['its internal policy, where the decisions stay the same', { ...before, internal: 'Local' }],
    ['its external policy, where the decisions stay the same', { ...before, external: 'Local' }],
    ['its port', { ...before, ports: [{ nodePort: 30080, port: 81 }] }],
    ['its NodePort', { ...before, ports: [{ nodePort: 30081 }] }],
    ['its cluster IP', { ...before, clusterIps: ['10.96.0.99'] }],
  ])('%s is another object', (_, after) => {
    const state = stateOf({ services: [service('ns/a', before)] });
    const first = buildTable(state, 'all', undefined, options);
    const dirty = state.apply([{ kind: 'upsert', resource: 'Service', item: service('ns/a', after) }]);
    const second = buildTable(state, dirtyServices(dirty), first, options);
    expect(diffTables(first, second).upserted).toEqual([...second.services.values()]);
    expect([...second.services]).toEqual([...tableOf({ services: [service('ns/a', after)] }).services]);
  });
});

test('a port that is not reachable from outside follows policy Cluster, with any policy of the Service', () => {
  const pending = service('ns/a', { type: 'LoadBalancer', external: 'Local' });
  const here = [{ ip: '10.244.1.1', node: 'n1' }];
  const [port] = [...tableOf({ services: [pending], slices: [slice('ns/a', { endpoints: here })] }).services.values()];
  expect(port?.policies).toEqual({ internal: 'Cluster', external: 'Cluster' });
  expect(port?.endpoints.Local).toEqual([]);
});

test('an older table is a base like any other, also after its successor moved frontends about', () => {
  const place = '203.0.113.5';
  const [a, b] = [service('ns/a', { externalIps: [place] }), service('ns/b', { clusterIps: ['10.96.0.11'] })];
  const state = stateOf({ services: [b] });
  const base = buildTable(state, 'all', undefined, options);
  buildTable(state, dirtyServices(state.apply([{ kind: 'upsert', resource: 'Service', item: a }])), base, options);
  state.apply([{ kind: 'delete', resource: 'Service', name: 'ns/a' }]);
  const item = service('ns/b', { clusterIps: ['10.96.0.11'], externalIps: [place] });
  const again = buildTable(
    state,
    dirtyServices(state.apply([{ kind: 'upsert', resource: 'Service', item }])),
    base,
    options,
  );
  expect(frontends(again, 'ns/b:/TCP')).toEqual(['clusterIP 10.96.0.11:80', `externalIP ${place}:80`]);
});

describe('settings', () => {
  const empty = tableOf({});

  test('a first table is all change, even if it is empty', () => {
    expect(diffTables(undefined, empty)).toEqual({ upserted: [], removed: [], settingsChanged: true });
    expect(isEmptyDelta(diffTables(undefined, empty))).toBe(false);
    expect(isEmptyDelta(diffTables(empty, empty))).toBe(true);
  });

  test('service CIDRs are those of the family, and a new one changes the settings alone', () => {
    const state = stateOf({ serviceCidrs: [serviceCidr('x', '10.96.0.0/16', 'fd00:10:96::/112')] });
    const before = buildTable(state, 'all', undefined, options);
    expect(before.serviceCidrs).toEqual(['10.96.0.0/16']);
    const dirty = state.apply([{ kind: 'upsert', resource: 'ServiceCIDR', item: serviceCidr('y', '10.97.0.0/16') }]);
    const after = buildTable(state, dirtyServices(dirty), before, options);
    expect(after.serviceCidrs).toEqual(['10.96.0.0/16', '10.97.0.0/16']);
    expect(diffTables(before, after)).toEqual({ upserted: [], removed: [], settingsChanged: true });
  });

  test('another health check port changes the settings alone, another count of endpoints does not', () => {
    const lb = (healthCheckNodePort: number, ...endpoints: readonly string[]): ForwardingTable =>
      tableOf({
        services: [service('ns/lb', { loadBalancerIps: ['198.51.100.7'], external: 'Local', healthCheckNodePort })],
        slices: [slice('ns/lb', { endpoints: endpoints.map((ip) => ({ ip, node: 'n1' })) })],
      });
    const before = lb(31_000, '10.244.1.1');
    const withServices = (table: ForwardingTable): ForwardingTable => ({ ...table, services: before.services });
    const delta = (table: ForwardingTable): unknown => diffTables(before, withServices(table));
    expect(delta(lb(31_001, '10.244.1.1'))).toEqual({ upserted: [], removed: [], settingsChanged: true });
    expect(delta(lb(31_000, '10.244.1.1', '10.244.1.2'))).toMatchObject({ settingsChanged: false });
    expect(delta(tableOf({}))).toMatchObject({ settingsChanged: true });
  });

  test('a range of the other family alone changes nothing', () => {
    const state = stateOf({});
    const before = buildTable(state, 'all', undefined, options);
    const dirty = state.apply([{ kind: 'upsert', resource: 'ServiceCIDR', item: serviceCidr('y', 'fd00::/112') }]);
    expect(dirty.everything).toBe(true);
    expect(buildTable(state, dirtyServices(dirty), before, options)).toBe(before);
  });

  test('a pod detector of the other family detects nothing', () => {
    const table = tableOf({ services: [service('ns/a')] }, tableOptions({ podCidr: 'fd00:10:244::/56' }));
    expect(table.podDetector).toEqual({ kind: 'none' });
    expect(tableOf({}).podDetector).toEqual({ kind: 'cidr', cidr: '10.244.0.0/16' });
  });

  test('an empty list of NodePort CIDRs stays empty', () => {
    expect(tableOf({}, tableOptions({ nodePortCidrs: [] })).nodePortCidrs).toEqual([]);
  });

  test('a NodePort CIDR that is listed twice is there once', () => {
    const twice = ['192.0.2.0/24', '10.0.0.0/8', '192.0.2.0/24'];
    expect(tableOf({}, tableOptions({ nodePortCidrs: twice })).nodePortCidrs).toEqual(['192.0.2.0/24', '10.0.0.0/8']);
  });

  test('the next build uses new NodePort CIDRs, even if nothing else is dirty', () => {
    const next = buildTable(stateOf({}), new Set(), empty, { ...options, nodePortCidrs: [parseCidr('192.0.2.0/24')] });
    expect(next.nodePortCidrs).toEqual(['192.0.2.0/24']);
    expect(diffTables(empty, next).settingsChanged).toBe(true);
  });
});

describe('health checks', () => {
  const spec: ServiceSpec = { external: 'Local', healthCheckNodePort: 32000 };
  test.each<readonly [string, ServiceSpec, number]>([
    ['LoadBalancer with Local', spec, 1],
    ['LoadBalancer with Cluster', { ...spec, external: 'Cluster' }, 0],
    ['NodePort with Local', { ...spec, type: 'NodePort' }, 0],
    ['LoadBalancer with Local and no port', { external: 'Local', type: 'LoadBalancer' }, 0],
    ['a Service of another proxy', { ...spec, serviceProxyName: 'other' }, 0],
  ])('%s', (_, given, count) => {
    expect(tableOf({ services: [service('ns/svc', given)] }).healthChecks.size).toBe(count);
  });

  test('a slice without a usable port counts for nothing', () => {
    const here = [{ ip: '10.244.1.1', node: 'n1' }];
    const table = tableOf({
      services: [service('ns/a', spec)],
      slices: [slice('ns/a', { ports: [], endpoints: here })],
    });
    expect([...table.healthChecks.values()].map((check) => check.localReadyEndpoints)).toEqual([0]);
  });

  test('a count that changes makes a new table without touching other health checks', () => {
    const before: ClusterSpec = {
      services: [
        service('ns/a', spec),
        service('ns/b', { ...spec, clusterIps: ['10.96.0.11'], healthCheckNodePort: 32001 }),
      ],
    };
    const state = stateOf(before);
    const first = buildTable(state, 'all', undefined, options);
    const item = slice('ns/a', { endpoints: [{ ip: '10.244.1.1', node: 'n1' }] });
    const dirty = state.apply([{ kind: 'upsert', resource: 'EndpointSlice', item }]);
    const second = buildTable(state, dirtyServices(dirty), first, options);
    const [a, b] = [serviceKey('ns', 'a'), serviceKey('ns', 'b')];
    expect(first.healthChecks.get(a)?.localReadyEndpoints).toBe(0);
    expect(second.healthChecks.get(a)?.localReadyEndpoints).toBe(1);
    expect(second.healthChecks.get(b)).toBe(first.healthChecks.get(b));
    const third = buildTable(state, dirtyServices(state.apply(eventsBetween(before, {}))), second, options);
    expect(third.healthChecks.size).toBe(0);
  });
});

test('fact 48: a new zone of our Node moves traffic at once', () => {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply(
    replaceAll({
      services: [service('ns/a')],
      slices: [
        slice('ns/a', {
          endpoints: [
            { ip: '10.244.1.1', zoneHints: ['a'] },
            { ip: '10.244.1.2', zoneHints: ['b'] },
          ],
        }),
      ],
      nodes: [node('n1', { zone: 'a' })],
    }),
  );
  const used = (table: ForwardingTable): readonly string[] =>
    [...table.services.values()].flatMap((port) => port.endpoints.Cluster.map((endpoint) => endpoint.address));
  const before = buildTable(state, 'all', undefined, options);
  const dirty = state.apply([{ kind: 'upsert', resource: 'Node', item: node('n1', { zone: 'b' }) }]);
  const after = buildTable(state, dirtyServices(dirty), before, options);
  expect([used(before), used(after)]).toEqual([['10.244.1.1'], ['10.244.1.2']]);
});
