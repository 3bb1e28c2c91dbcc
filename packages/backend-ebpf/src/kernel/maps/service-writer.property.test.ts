import { nftablesTraits } from '@switchyard/backend-nftables/traits';
import {
  type Cidr,
  cidrContains,
  type Decision,
  diffTables,
  explain,
  type Flow,
  type Frontend,
  type ForwardingTable,
  type IpAddress,
  parseIp,
  parsePort,
  type ServiceForwarding,
  type ServicePortKey,
  sourceClasses,
} from '@switchyard/core';
import {
  type ClusterSpec,
  type EndpointSpec,
  node,
  service,
  serviceCidr,
  slice,
  tableOf,
  tableOptions,
} from '@switchyard/core/testing';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { MapSet } from '../kernel.ts';
import { nodeAddressFlags, offsetOf, smallestSizes } from '../../render/layouts.ts';
import {
  memoryMaps,
  noFaults,
  type PickOutcome,
  pickOutcomes,
  type PickRequest,
  pinClient,
  StepClock,
} from '../../testing/index.ts';
import { putAddress } from '../../render/address-words.ts';
import { dumpMaps } from './dump.ts';
import { ServiceWriter } from './service-writer.ts';

// The central test of this folder: a reader looks at the maps after every single store, for random sequences of tables.

const here = '192.0.2.1';
const clients: Readonly<Record<Flow['from'], string>> = { pod: '10.244.1.200', node: here, outside: '203.0.113.9' };
const someOf = (...values: readonly string[]): fc.Arbitrary<readonly string[]> =>
  fc.uniqueArray(fc.constantFrom(...values), { maxLength: 2 });
const policy = fc.constantFrom('Cluster', 'Local');

const anyService = fc
  .record({
    key: fc.constantFrom('ns/a', 'ns/a-b', 'ns/b', 'other/a'),
    clusterIps: fc.constantFrom(['10.96.0.1'], ['10.96.0.2'], ['10.96.0.3']),
    ports: fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('x', 'y'),
        port: fc.constantFrom(80, 81),
        nodePort: fc.constantFrom(30080, 30081, undefined),
        protocol: fc.constantFrom('TCP', 'TCP', 'UDP', 'SCTP'),
      }),
      { minLength: 1, maxLength: 2, selector: (port) => port.name },
    ),
    loadBalancerIps: someOf('198.51.100.1', '198.51.100.2'),
    externalIps: someOf('198.51.100.2', '198.51.100.3'),
    sourceRanges: someOf('203.0.113.0/24', '10.0.0.0/8', '0.0.0.0/0'),
    external: policy,
    internal: policy,
    affinitySeconds: fc.constantFrom(undefined, 10, 10_800),
  })
  .map(({ key, affinitySeconds, ...spec }) =>
    service(key, {
      ...spec,
      ports: spec.ports.map(({ nodePort, ...port }) => (nodePort === undefined ? port : { ...port, nodePort })),
      ...(affinitySeconds === undefined ? {} : { affinitySeconds }),
    }),
  );

const anyEndpoint: fc.Arbitrary<EndpointSpec> = fc.record({
  ip: fc.constantFrom('10.244.1.1', '10.244.1.2', '10.244.2.1', '10.244.3.1', '10.244.1.200'),
  node: fc.constantFrom('n1', 'n2'),
  ready: fc.boolean(),
  serving: fc.boolean(),
  terminating: fc.boolean(),
});

const anySlice = fc
  .record({
    of: fc.constantFrom('ns/a', 'ns/a-b', 'ns/b', 'other/a'),
    name: fc.constantFrom('s1', 's2', 's3', 's4', 's5'),
    ports: fc.uniqueArray(
      fc.record({
        name: fc.constantFrom('x', 'y'),
        port: fc.constantFrom(8080, 8081),
        protocol: fc.constantFrom('TCP', 'TCP', 'UDP', 'SCTP'),
      }),
      { maxLength: 2, selector: (port) => port.name },
    ),
    endpoints: fc.array(anyEndpoint, { maxLength: 5 }),
  })
  .map(({ of, ...spec }) => slice(of, spec));

const anyCluster: fc.Arbitrary<ClusterSpec> = fc.record({
  services: fc.uniqueArray(anyService, { maxLength: 4, selector: (item) => item.key }),
  slices: fc.uniqueArray(anySlice, { maxLength: 5, selector: (item) => item.key }),
  nodes: fc.constant([node('n1', { addresses: [here] })]),
  serviceCidrs: fc.constant([serviceCidr('default', '10.96.0.0/16')]),
});

/** How a table comes to the maps, and how much time has passed since the one before. */
interface Step {
  readonly cluster: ClusterSpec;
  readonly way: 'delta' | 'full' | 'restart';
  readonly pause: number;
}

const anyStep: fc.Arbitrary<Step> = fc.record({
  cluster: anyCluster,
  way: fc.constantFrom('delta', 'delta', 'full', 'restart'),
  pause: fc.constantFrom(0, 500, 2000),
});

test('after every store, each packet meets the table before or the table after, and in the end all is as if written at once', () => {
  fc.assert(
    fc.property(fc.array(anyStep, { minLength: 1, maxLength: 4 }), (steps) => walk(steps)),
    { numRuns: 25 },
  );
}, 60_000);

/** One Service whose policies, ranges and endpoints change: each set fills and empties while others lead to it. */
const anyOfOne: fc.Arbitrary<ClusterSpec> = fc
  .record({
    external: policy,
    internal: policy,
    sourceRanges: someOf('203.0.113.0/24', '10.0.0.0/8'),
    affinitySeconds: fc.constantFrom(10, 10, undefined),
    endpoints: fc.uniqueArray(anyEndpoint, { maxLength: 4, selector: ({ ip }) => ip }),
  })
  .map(({ endpoints, affinitySeconds, ...spec }) => ({
    services: [
      service('ns/a', {
        ...spec,
        ...(affinitySeconds === undefined ? {} : { affinitySeconds }),
        clusterIps: ['10.96.0.1'],
        ports: [{ port: 80, nodePort: 30080 }],
        loadBalancerIps: ['198.51.100.1'],
      }),
    ],
    slices: [slice('ns/a', { endpoints })],
    nodes: [node('n1', { addresses: [here] })],
    serviceCidrs: [serviceCidr('default', '10.96.0.0/16')],
  }));

test('the same while the policies and endpoints of one Service change', () => {
  const step = fc.record({
    cluster: anyOfOne,
    way: fc.constantFrom('delta', 'delta', 'full', 'restart'),
    pause: fc.constantFrom(0, 2000),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 3, maxLength: 8 }), (steps) => walk(steps)),
    { numRuns: 30 },
  );
}, 60_000);

function walk(steps: readonly Step[]): void {
  const faults = noFaults();
  const maps = prepared(memoryMaps(smallestSizes, faults));
  const clock = new StepClock();
  let check = (): void => {};
  const open = (): ServiceWriter => new ServiceWriter(maps, { clock, afterStore: () => check() });
  faults.afterWrite = () => check();
  let writer = open();
  let before = tableOf({ serviceCidrs: [serviceCidr('default', '10.96.0.0/16')] }, tableOptions());
  writer.applyFull(before);
  for (const { cluster, way, pause } of steps) {
    const after = tableOf(cluster, tableOptions());
    clock.step(pause);
    const pins = pinClients(maps, before);
    check = checkOf(maps, { before, after, pins, isRestart: way === 'restart' });
    if (way === 'restart') writer = open();
    const result = way === 'delta' ? writer.applyDelta(diffTables(before, after)) : writer.applyFull(after);
    check();
    check = () => {};
    expect([...result.failed.values()]).toEqual([]);
    expect(result.grow).toBeUndefined();
    expectWritten(maps, writer, after);
    for (const pin of pins) expectPin(maps, pin, after);
    before = after;
  }
}

/** The maps are as if only this table had ever been written, and no writer finds a difference. */
function expectWritten(maps: MapSet, writer: ServiceWriter, table: ForwardingTable): void {
  const fresh = memoryMaps(smallestSizes);
  new ServiceWriter(fresh, { clock: new StepClock() }).applyFull(table);
  expect(dumpMaps(maps)).toBe(dumpMaps(fresh));
  expect(writer.findDamage()).toEqual([]);
  expect(writer.applyFull(table).writes).toBe(0);
  expect(new ServiceWriter(maps, { clock: new StepClock() }).applyFull(table).writes).toBe(0);
}

/** NodePorts answer at `here`, cluster IPs are guarded. */
function prepared(maps: MapSet): MapSet {
  const address = new Uint32Array(4);
  putAddress(address, 0, parseIp(here));
  maps.node_addresses.update(
    new Uint8Array(address.buffer),
    new Uint8Array(Uint32Array.of(nodeAddressFlags.nodePort).buffer),
  );
  const settings = maps.configuration.values();
  settings[offsetOf('configuration', 'guards')] = 1;
  const at = offsetOf('configuration', 'guard0_address');
  settings.set([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 96, 0, 0], at);
  settings.set([255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0], at + 16);
  return maps;
}

function flowsOf(tables: readonly ForwardingTable[]): readonly Flow[] {
  const places = new Map<string, Pick<Flow, 'destination' | 'destinationPort' | 'protocol'>>();
  const add = (destination: IpAddress, port: number, protocol: Flow['protocol']): void => {
    places.set(`${destination} ${port} ${protocol}`, { destination, destinationPort: parsePort(port), protocol });
  };
  for (const { services } of tables) {
    for (const { frontends, protocol } of services.values()) {
      if (protocol === 'SCTP') continue;
      for (const { address, port } of frontends)
        add(address === 'anyNodePortAddress' ? parseIp(here) : address, port, protocol);
    }
  }
  for (const guarded of ['10.96.0.1', '10.96.0.2', '10.96.0.9']) add(parseIp(guarded), 99, 'TCP');
  return [...places.values()].flatMap((place) =>
    sourceClasses.map((from) => ({
      ...place,
      from,
      source: parseIp(clients[from]),
      destinationIsLocal: place.destination === here,
    })),
  );
}

interface Pin {
  readonly flow: Flow;
  readonly key: ServicePortKey;
  readonly place: string;
}

interface Change {
  readonly before: ForwardingTable;
  readonly after: ForwardingTable;
  readonly pins: readonly Pin[];
  readonly isRestart: boolean;
}

const pinnedClient: PickRequest['client'] = { kind: 'networkNamespace', cookie: 7n };

/** One client is at the first endpoint of each Service that keeps clients; the same for all its frontends. */
function pinClients(maps: MapSet, table: ForwardingTable): readonly Pin[] {
  const pins = new Map<number, Pin>();
  for (const flow of flowsOf([table])) {
    const { frontend, service: key } = explain(table, flow, nftablesTraits);
    if (frontend === undefined || key === undefined || frontend.allowedSources !== 'any') continue;
    if (table.services.get(key)?.sessionAffinity.kind !== 'clientIP') continue;
    const [first] = pickOutcomes(maps, { ...requestOf(flow), client: { kind: 'networkNamespace', cookie: 8n } });
    if (first?.kind !== 'forward' || pins.has(first.service)) continue;
    pinClient(maps, { ...first, client: pinnedClient });
    pins.set(first.service, { flow, key, place: outcomeText([first]) });
  }
  return [...pins.values()];
}

function requestOf({ destination, destinationPort: port, protocol, from, source }: Flow): PickRequest {
  return { destination, port, protocol, from, client: { kind: 'address', address: source } };
}

/** A client stays where it was as long as that endpoint is in the set. */
function expectPin(maps: MapSet, { flow, key, place }: Pin, after: ForwardingTable): void {
  const { verdict, service: now, frontend } = explain(after, flow, nftablesTraits);
  if (now !== key || frontend === undefined || verdict.kind !== 'forward' || frontend.allowedSources !== 'any') return;
  const found = outcomeText(pickOutcomes(maps, { ...requestOf(flow), client: pinnedClient }));
  const wanted = verdictText(after, flow);
  const keeps = after.services.get(key)?.sessionAffinity.kind === 'clientIP';
  const masquerade = wanted.endsWith(' masqueraded') ? ' masqueraded' : '';
  const endpoint = place.replace(/ masqueraded$/, '');
  const isStill = wanted
    .replace(/ masqueraded$/, '')
    .split(' ')
    .includes(endpoint);
  expect(found).toBe(keeps && isStill ? `${endpoint}${masquerade}` : wanted);
}

function checkOf(maps: MapSet, change: Change): () => void {
  const { before, after, pins } = change;
  const flows = flowsOf([before, after]).map((flow) => ({
    request: requestOf(flow),
    allowed: allowedOf(flow, change),
  }));
  return () => {
    for (const { request, allowed } of flows) {
      const found = outcomeText(pickOutcomes(maps, request));
      if (!allowed.has(found)) {
        const { destination, port, from } = request;
        expect.fail(`${from} to ${destination}:${port}: ${found} instead of ${[...allowed].join(' | ')}`);
      }
    }
    for (const { flow, place } of pins) {
      const found = outcomeText(pickOutcomes(maps, { ...requestOf(flow), client: pinnedClient }));
      const allowed = allowedOf(flow, change);
      const isPinned = found.replace(/ masqueraded$/, '') === place.replace(/ masqueraded$/, '');
      const isAllowed = isPinned || allowed.has(found) || found === 'pass';
      if (!isAllowed) expect.fail(`a client at ${place}: ${found} instead of ${[...allowed].join(' | ')}`);
    }
  };
}

/** The table before, the table after, or the Service as it was decided before over its endpoints now. */
function allowedOf(flow: Flow, change: Change): ReadonlySet<string> {
  const { before, after } = change;
  const allowed = new Set([verdictText(before, flow), verdictText(after, flow)]);
  const was = ownerOf(before, flow);
  const now = ownerOf(after, flow);
  if (was !== undefined) allowed.add(decisionText(was.frontend.decisions[flow.from], was.service));
  for (const service of was === undefined ? [] : after.services.values()) {
    const decision = was?.frontend.decisions[flow.from];
    if (decision?.kind !== 'forward' || !isSame(was?.service, service, change)) continue;
    if (service.endpoints[decision.to].length > 0) allowed.add(decisionText(decision, service));
  }
  if (now === undefined || now.frontend.allowedSources === 'any') return allowed;
  // New source ranges come before the frontends, old ones go after them: in between, both let in.
  const old = [...before.services.values()].filter((service) => isSame(service, now.service, change));
  const ranges = old.flatMap(({ frontends }) => frontends.flatMap(sourcesOf));
  const isAllowed = ranges.some((range) => cidrContains(range, flow.source));
  if (isAllowed) allowed.add(decisionText(now.frontend.decisions[flow.from], now.service));
  return allowed;
}

interface Owner {
  readonly service: ServiceForwarding;
  readonly frontend: Frontend;
}

function ownerOf(table: ForwardingTable, flow: Flow): Owner | undefined {
  const { service: key, frontend } = explain(table, flow, nftablesTraits);
  const service = key === undefined ? undefined : table.services.get(key);
  return service === undefined || frontend === undefined ? undefined : { service, frontend };
}

function sourcesOf({ allowedSources }: Frontend): readonly Cidr[] {
  return allowedSources === 'any' ? [] : allowedSources;
}

/** A process without memory knows a Service by its frontends, not by its name. */
function isSame(was: ServiceForwarding | undefined, now: ServiceForwarding, { isRestart }: Change): boolean {
  if (!isRestart || was === undefined || was.protocol !== now.protocol) return was?.key === now.key;
  return was.frontends.some((a) => now.frontends.some((b) => a.address === b.address && a.port === b.port));
}

function verdictText(table: ForwardingTable, flow: Flow): string {
  const { verdict, service: key } = explain(table, flow, nftablesTraits);
  if (verdict.kind !== 'forward') return verdict.kind;
  return forwardText(
    verdict.endpoints.map(({ address, port }) => `${address}:${port}`),
    key !== undefined && verdict.masquerade,
  );
}

function decisionText(decision: Decision, { endpoints }: ServiceForwarding): string {
  if (decision.kind !== 'forward') return decision.kind;
  return forwardText(
    endpoints[decision.to].map(({ address, port }) => `${address}:${port}`),
    decision.masquerade,
  );
}

function forwardText(endpoints: readonly string[], masquerade: boolean): string {
  return `${[...new Set(endpoints)].sort().join(' ')}${masquerade ? ' masqueraded' : ''}`;
}

/** Half a set, or a contradiction, is a text that no table has. */
function outcomeText(outcomes: readonly PickOutcome[]): string {
  const forwards = outcomes.filter((outcome) => outcome.kind === 'forward');
  const others = new Set(outcomes.flatMap(({ kind }) => (kind === 'forward' ? [] : [kind])));
  if (forwards.length === 0) return [...others].join('+');
  const text = forwardText(
    forwards.map(({ address, port }) => `${address}:${port}`),
    forwards[0]!.masquerade,
  );
  return others.size === 0 ? text : `${text}+${[...others].join('+')}`;
}
