import { describe, expect, test } from 'vitest';
import { nodeName, serviceKey, servicePortKey } from '../records/keys.ts';
import type { ClusterEvent } from '../state/cluster-event.ts';
import { ClusterState, dirtyServices } from '../state/cluster-state.ts';
import { flow, type OptionsSpec, service, slice, type ServiceSpec, tableOptions } from '../../testing/builders.ts';
import { type ClusterSpec, tableOf } from '../../testing/cluster.ts';
import { replaceAll } from '../../testing/expand-states.ts';
import { buildTable } from './build-table.ts';
import { explain } from './explain.ts';
import type { ForwardingTable } from './forwarding-table.ts';
import { strictTraits } from '../../testing/traits.ts';

const reached: OptionsSpec = { apiServers: [['192.0.2.1', 6443]] };
const kubernetes = service('default/kubernetes', { clusterIps: ['10.96.0.1'], ports: [{ name: 'https', port: 443 }] });
const apiEndpoints = slice('default/kubernetes', {
  ports: [{ name: 'https', port: 6443 }],
  endpoints: ['192.0.2.1', '192.0.2.2'],
});

/** The cluster with a Service at 192.0.2.1:6443, which leads to 10.244.1.1 unless said otherwise. */
function withService(spec: ServiceSpec, endpoints: readonly string[] = ['10.244.1.1'], port = 6443): ClusterSpec {
  const asking = service('shop/evil', { ports: [{ port: 6443 }], ...spec });
  return {
    services: [kubernetes, asking],
    slices: [apiEndpoints, slice('shop/evil', { ports: [{ port }], endpoints })],
  };
}

/** Addresses of the external frontends that shop/evil has, and has lost: `192.0.2.1 to apiServer`. */
function addresses(table: ForwardingTable, protocol: 'TCP' | 'UDP' = 'TCP'): Record<'has' | 'lost', readonly string[]> {
  const port = table.services.get(servicePortKey(serviceKey('shop', 'evil'), '', protocol));
  return {
    has: (port?.frontends ?? []).filter(({ kind }) => kind !== 'clusterIP').map(({ address }) => address),
    lost: (port?.lostFrontends ?? []).map(({ frontend, winner }) => `${frontend.address} to ${winner}`),
  };
}

describe('an address at which this process reaches the API server', () => {
  test.each<readonly [string, ServiceSpec]>([
    ['external IP', { externalIps: ['192.0.2.1'] }],
    ['load-balancer IP', { loadBalancerIps: ['192.0.2.1'] }],
    ['load-balancer IP with source ranges', { loadBalancerIps: ['192.0.2.1'], sourceRanges: ['198.51.100.0/24'] }],
  ])('is not captured by an %s', (_, spec) => {
    const table = tableOf(withService(spec), tableOptions(reached));
    expect(addresses(table)).toEqual({ has: [], lost: ['192.0.2.1 to apiServer'] });
    for (const from of ['pod', 'node', 'outside'] as const) {
      expect(explain(table, flow(from, '192.0.2.1:6443'), strictTraits)).toMatchObject({
        verdict: { kind: 'pass' },
        reasons: [{ code: 'apiServerAddress', text: expect.stringContaining('shop/evil:/TCP') }],
      });
    }
  });

  test('is not captured by a Service without endpoints, which would refuse', () => {
    const table = tableOf(withService({ externalIps: ['192.0.2.1'] }, []), tableOptions(reached));
    expect(addresses(table).has).toEqual([]);
  });

  test.each<readonly [string, ServiceSpec]>([
    ['another address', { externalIps: ['192.0.2.9'] }],
    ['another port', { externalIps: ['192.0.2.1'], ports: [{ port: 443 }] }],
  ])('leaves %s alone', (_, spec) => {
    const table = tableOf(withService(spec), tableOptions(reached));
    expect(addresses(table)).toEqual({ has: spec.externalIps, lost: [] });
  });

  test('leaves UDP alone', () => {
    const spec = { externalIps: ['192.0.2.1'], ports: [{ port: 6443, protocol: 'UDP' as const }] };
    expect(addresses(tableOf(withService(spec), tableOptions(reached)), 'UDP').has).toEqual(['192.0.2.1']);
  });

  test('may be captured by a Service that leads to API servers alone', () => {
    const spec = { loadBalancerIps: ['192.0.2.1'] };
    expect(addresses(tableOf(withService(spec, ['192.0.2.2']), tableOptions(reached))).has).toEqual(['192.0.2.1']);
    const mixed = tableOf(withService(spec, ['192.0.2.2', '10.244.1.1']), tableOptions(reached));
    expect(addresses(mixed).lost).toEqual(['192.0.2.1 to apiServer']);
    const otherPort = tableOf(withService(spec, ['192.0.2.2'], 22), tableOptions(reached));
    expect(addresses(otherPort).lost).toEqual(['192.0.2.1 to apiServer']);
  });

  test('may be the cluster IP of a Service: there the endpoints of default/kubernetes are not captured', () => {
    const options = tableOptions({ apiServers: [['10.96.0.1', 443]] });
    const table = tableOf(withService({ externalIps: ['192.0.2.1', '192.0.2.9'] }), options);
    expect(table.services.get(servicePortKey(kubernetes.key, 'https', 'TCP'))?.frontends).toMatchObject([
      { kind: 'clusterIP', address: '10.96.0.1', port: 443 },
    ]);
    expect(addresses(table)).toEqual({ has: ['192.0.2.9'], lost: ['192.0.2.1 to apiServer'] });
  });

  test('of the other family changes nothing in this one', () => {
    const table = tableOf(
      withService({ externalIps: ['192.0.2.1'] }),
      tableOptions({ apiServers: [['2001:db8::1', 6443]] }),
    );
    expect(addresses(table).has).toEqual(['192.0.2.1']);
    const six = tableOf(
      {
        services: [
          service('shop/evil', { clusterIps: ['fd00::1'], externalIps: ['2001:db8::1'], ports: [{ port: 6443 }] }),
        ],
      },
      tableOptions({ ipFamily: 'IPv6', apiServers: [['2001:db8::1', 6443]] }),
    );
    expect(addresses(six).lost).toEqual(['2001:db8::1 to apiServer']);
  });
});

test('a change of the API servers is a change of everything, and each table equals one built from nothing', () => {
  const options = tableOptions(reached);
  const cluster = withService({ loadBalancerIps: ['192.0.2.1'] }, ['192.0.2.2']);
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply(replaceAll(cluster));
  const first = buildTable(state, 'all', undefined, options);
  const item = { ...apiEndpoints, endpoints: apiEndpoints.endpoints.slice(0, 1) };
  const dirty = state.apply([{ kind: 'upsert', resource: 'EndpointSlice', item }]);
  expect(dirty.everything).toBe(true);
  expect(addresses(buildTable(state, dirtyServices(dirty), first, options)).lost).toEqual(['192.0.2.1 to apiServer']);
});

test('changes of the Service that asks lead to what a build from nothing gives', () => {
  const options = tableOptions(reached);
  const state = new ClusterState({ nodeName: nodeName('n1') });
  state.apply(replaceAll(withService({ externalIps: ['192.0.2.1'] })));
  let table = buildTable(state, 'all', undefined, options);
  const step = (event: ClusterEvent): ReturnType<typeof addresses> => {
    table = buildTable(state, dirtyServices(state.apply([event])), table, options);
    const fresh = buildTable(state, 'all', undefined, options);
    expect(new Map(table.services)).toEqual(new Map(fresh.services));
    return addresses(table);
  };
  const endpoints = (...ips: readonly string[]): ClusterEvent => {
    const item = slice('shop/evil', { ports: [{ port: 6443 }], endpoints: ips });
    return { kind: 'upsert', resource: 'EndpointSlice', item };
  };
  expect(step(endpoints('192.0.2.2')).has).toEqual(['192.0.2.1']);
  expect(step(endpoints('10.244.1.1')).has).toEqual([]);
  expect(step(endpoints()).lost).toEqual(['192.0.2.1 to apiServer']);
  step({ kind: 'delete', resource: 'Service', name: 'shop/evil' });
  expect(table.services.has(servicePortKey(serviceKey('shop', 'evil'), '', 'TCP'))).toBe(false);
});

test('a family that begins without Services does not change what another one does, which begins so as well', () => {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  const options = tableOptions(reached);
  const four = buildTable(state, 'all', undefined, options);
  buildTable(state, 'all', undefined, tableOptions({ ...reached, ipFamily: 'IPv6' }));
  const dirty = state.apply(
    replaceAll(withService({ externalIps: ['192.0.2.1'] })).filter(({ resource }) => resource === 'Service'),
  );
  const services = new Set([...dirty.services].filter((key) => key === serviceKey('shop', 'evil')));
  expect(addresses(buildTable(state, services, four, options)).has).toEqual([]);
});
