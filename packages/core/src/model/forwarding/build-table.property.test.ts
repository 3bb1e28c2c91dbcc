import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nodeName, type ServiceKey } from '../records/keys.ts';
import { ClusterState, dirtyServices } from '../state/cluster-state.ts';
import {
  type ClusterSpec,
  type EndpointSpec,
  eventsBetween,
  expandStates,
  node,
  service,
  serviceCidr,
  type Sequence,
  slice,
  tableOf,
  tableOptions,
} from '../../testing/index.ts';
import { buildContext, type PreparedService, prepareService } from './build-service.ts';
import { buildTable, buildTableFrom } from './build-table.ts';
import { diffTables, isEmptyDelta } from './build-table.ts';
import { isEqual } from '../../base/values.ts';
import type { ForwardingTable } from './forwarding-table.ts';
import { finish } from '../../base/steps.ts';

// Small pools, so that Services meet at addresses, slices share endpoints and hints sometimes agree.
const serviceNames = ['ns/a', 'ns/a-b', 'ns/b', 'other/a'];
const policy = fc.constantFrom('Cluster', 'Local');
const portNumber = fc.constantFrom(80, 81);
const someOf = (...values: readonly string[]): fc.Arbitrary<readonly string[]> =>
  fc.uniqueArray(fc.constantFrom(...values), { maxLength: 2 });
const familyIps = someOf('198.51.100.1', '198.51.100.2', '2001:db8:f::1');
const ipModes = fc.constantFrom('VIP', 'VIP', 'Router', 'Proxy', 'Later');
const balancedIps = fc
  .tuple(familyIps, ipModes, ipModes)
  .map(([ips, ...modes]) => ips.map((ip, index) => [ip, modes[index] ?? 'VIP'] as const));

const anyService = fc
  .record({
    key: fc.constantFrom(...serviceNames),
    clusterIps: fc.constantFrom(['10.96.0.1'], ['10.96.0.2', 'fd00:10:96::2'], ['fd00:10:96::3'], ['10.96.0.4']),
    ports: fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('x', 'y'),
        port: portNumber,
        nodePort: fc.constantFrom(30080, 30081),
      }),
      { minLength: 1, maxLength: 2, selector: (port) => port.name },
    ),
    loadBalancerIps: balancedIps,
    externalIps: familyIps,
    sourceRanges: someOf('192.0.2.0/24', '10.0.0.0/8', '2001:db8::/32'),
    external: policy,
    internal: policy,
    healthCheckNodePort: fc.constantFrom(32000, 32001),
    affinitySeconds: fc.constantFrom(10, 10_800),
  })
  .map(({ key, ...spec }) => service(key, spec));

const anyEndpoint: fc.Arbitrary<EndpointSpec> = fc.record({
  ip: fc.constantFrom('10.244.1.1', '10.244.1.2', '10.244.2.1', '10.244.3.1'),
  node: fc.constantFrom('n1', 'n2'),
  ready: fc.boolean(),
  serving: fc.boolean(),
  terminating: fc.boolean(),
  zoneHints: someOf('a', 'b'),
  nodeHints: someOf('n1', 'n2'),
});

const anySlice = fc
  .record({
    of: fc.constantFrom(...serviceNames),
    name: fc.constantFrom('s1', 's2', 's3', 's4', 's5'),
    ports: fc.uniqueArray(fc.record({ name: fc.constantFrom('x', 'y'), port: fc.constantFrom(8080, 8081) }), {
      maxLength: 2,
      selector: (port) => port.name,
    }),
    endpoints: fc.array(anyEndpoint, { maxLength: 5 }),
  })
  .map(({ of, ...spec }) => slice(of, spec));

/** Mostly the same: a change of either rebuilds everything, and it is the other path that is hard. */
const someNodes = fc.oneof(
  { weight: 6, arbitrary: fc.constant([node('n1', { zone: 'a', addresses: ['192.0.2.1', '2001:db8::1'] })]) },
  { weight: 1, arbitrary: fc.constant([node('n1', { zone: 'b', addresses: ['10.0.0.1'] })]) },
  { weight: 1, arbitrary: fc.constant([]) },
);
const someCidrs = fc.oneof(
  { weight: 6, arbitrary: fc.constant([serviceCidr('default', '10.96.0.0/16', 'fd00:10:96::/112')]) },
  { weight: 1, arbitrary: fc.constant([]) },
);

const anyCluster: fc.Arbitrary<ClusterSpec> = fc.record({
  services: fc.uniqueArray(anyService, { maxLength: 4, selector: (item) => item.key }),
  slices: fc.uniqueArray(anySlice, { maxLength: 5, selector: (item) => item.key }),
  nodes: someNodes,
  serviceCidrs: someCidrs,
});

const anyOptions = fc
  .record({
    ipFamily: fc.constantFrom('IPv4', 'IPv6'),
    terminatingFallback: fc.constantFrom('on', 'off'),
    routerIpMode: fc.constantFrom('localOnly', 'asVip'),
  })
  .map(tableOptions);

/** Contents of a table, without its history. */
function contents(table: ForwardingTable): unknown {
  return { ...table, generation: 0, services: [...table.services], healthChecks: [...table.healthChecks] };
}

/** `isPrepared`: all Services are prepared from their last version, as large ones are. */
function walk(
  sequence: Sequence,
  options: ReturnType<typeof tableOptions>,
  isPrepared: boolean,
): ForwardingTable | undefined {
  const state = new ClusterState({ nodeName: nodeName('n1') });
  const prepared = new Map<ServiceKey, PreparedService>();
  let previous: ForwardingTable | undefined;
  for (const { batch, cluster } of sequence.steps) {
    const dirty = dirtyServices(state.apply(batch));
    const context = buildContext(state, options);
    for (const key of isPrepared ? new Set([...prepared.keys(), ...state.services.keys()]) : []) {
      prepared.set(key, finish(prepareService(key, context, prepared.get(key))));
    }
    const next = buildTableFrom({ state, dirty, previous, options, prepared });
    expect(contents(next)).toEqual(contents(tableOf(cluster, options)));
    expectIdentityKept(previous, next);
    previous = next;
  }
  return previous;
}

/** Unchanged services are the same objects, a change raises the generation, and the delta says exactly what differs. */
function expectIdentityKept(previous: ForwardingTable | undefined, next: ForwardingTable): void {
  const delta = diffTables(previous, next);
  const before = new Map(previous?.services);
  for (const [key, now] of next.services) {
    const old = before.get(key);
    expect(delta.upserted.includes(now)).toBe(old !== now);
    if (old !== undefined) expect(old === now).toBe(isEqual(old, now));
  }
  expect(delta.removed).toEqual([...before.keys()].filter((key) => !next.services.has(key)));
  if (previous === undefined) return;
  if (next === previous) expect(isEmptyDelta(delta)).toBe(true);
  else expect(next.generation).toBe(previous.generation + 1);
  expect(isEqual(contents(previous), contents(next))).toBe(next === previous);
}

describe('after any order of changes,', () => {
  test('each table equals one built from nothing and shares what did not change', () => {
    fc.assert(
      fc.property(fc.array(anyCluster, { minLength: 1, maxLength: 4 }), anyOptions, (states, options) => {
        for (const sequence of expandStates(states)) for (const way of [false, true]) walk(sequence, options, way);
      }),
      { numRuns: 60 },
    );
  });

  test('the order in which the events of a batch arrive does not matter', () => {
    const shuffled = anyCluster.chain((cluster) => {
      const events = eventsBetween({}, cluster);
      return fc.record({
        cluster: fc.constant(cluster),
        events: fc.shuffledSubarray([...events], { minLength: events.length, maxLength: events.length }),
      });
    });
    fc.assert(
      fc.property(shuffled, anyOptions, ({ cluster, events }, options) => {
        const state = new ClusterState({ nodeName: nodeName('n1') });
        let table: ForwardingTable | undefined;
        for (const event of events) table = buildTable(state, dirtyServices(state.apply([event])), table, options);
        const expected = tableOf(cluster, options);
        expect(contents(table ?? tableOf({}, options))).toEqual(contents(expected));
      }),
      { numRuns: 100 },
    );
  });

  test('no two frontends of a table share a place, and every lost one names its winner', () => {
    fc.assert(
      fc.property(anyCluster, anyOptions, (cluster, options) => {
        const table = tableOf(cluster, options);
        const owners = new Map<string, string>();
        for (const port of table.services.values()) {
          for (const frontend of [...port.frontends, ...(port.leftToRoute ?? [])]) {
            const place = `${frontend.address} ${frontend.port} ${port.protocol}`;
            if ('decisions' in frontend) expect(owners.get(place)).toBeUndefined();
            owners.set(place, owners.get(place) ?? port.key);
          }
        }
        for (const port of table.services.values()) {
          for (const { frontend, winner } of port.lostFrontends) {
            expect(owners.get(`${frontend.address} ${frontend.port} ${port.protocol}`)).toBe(winner);
            expect(winner).not.toBe(port.key);
          }
        }
      }),
      { numRuns: 200 },
    );
  });
});

test('an older table can be built upon again: lines of tables do not disturb each other', () => {
  fc.assert(
    fc.property(anyCluster, anyCluster, anyCluster, (first, second, third) => {
      const options = tableOptions();
      const base = tableOf(first, options);
      for (const cluster of [second, third, second]) {
        const state = new ClusterState({ nodeName: nodeName('n1') });
        state.apply(eventsBetween({}, first));
        const dirty = state.apply(eventsBetween(first, cluster));
        const next = buildTable(state, dirtyServices(dirty), base, options);
        expect(contents(next)).toEqual(contents(tableOf(cluster, options)));
      }
      expect(contents(base)).toEqual(contents(tableOf(first, options)));
    }),
    { numRuns: 60 },
  );
});

test('services that are dirty without a change leave the table as it is', () => {
  fc.assert(
    fc.property(anyCluster, anyOptions, (cluster, options) => {
      const state = new ClusterState({ nodeName: nodeName('n1') });
      state.apply(eventsBetween({}, cluster));
      const table = buildTable(state, 'all', undefined, options);
      expect(buildTable(state, 'all', table, options)).toBe(table);
      const keys = new Set(serviceNames.map((name) => service(name).key));
      expect(buildTable(state, keys, table, options)).toBe(table);
      expect(buildTable(state, new Set(), table, options)).toBe(table);
    }),
    { numRuns: 60 },
  );
});
