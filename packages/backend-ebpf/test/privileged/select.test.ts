import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { actions, endpointFlags, frontendFlags, masqueradeBit, sourceClassIndex } from '../../src/render/layouts.ts';
import { type PickAnswer, PickProgram, type PickRequest } from './pick-program.ts';
import { actionsFor, tcp, udp } from './socket-world.ts';
import { guardFields, index, WrittenMaps } from './written-maps.ts';

// Maps as the agent leaves them for a moment, or never would: what the selection must not be misled by.

const { cluster, local, reject, drop } = actions;
const { inCluster, inLocal, alive } = endpointFlags;
const vip = '10.96.0.1';
const node = '192.0.2.1';

let program: PickProgram;
let maps: WrittenMaps;

beforeAll(() => {
  program = new PickProgram();
  maps = new WrittenMaps(program.maps);
});

afterAll(() => program?.[Symbol.dispose]());

const frontend = { address: vip, port: 80, protocol: tcp, service: 1, cookie: 7, actions: actionsFor(cluster) };

beforeEach(() => {
  for (const map of ['frontends', 'affinity', 'source_ranges', 'node_addresses'] as const) maps.empty(map);
  maps.configure({ guards: 1, ...guardFields(0, '10.96.0.0/16') });
  maps.endpoint(10, { address: '10.244.0.10', port: 8080, service: 1 });
  maps.endpoint(11, { address: '10.244.0.11', port: 8080, service: 1 });
  maps.endpoint(20, { address: '10.244.0.20', port: 8080, service: 2 });
  maps.service(1, { cookie: 7 });
  maps.publish(1, 'cluster_set', maps.slots(1, 64, [10, 11]));
  maps.publish(1, 'local_set', maps.slots(1, 68, [11]));
  maps.frontend(frontend);
});

function ask(more: Partial<PickRequest> = {}): PickAnswer {
  return program.ask({ destination: vip, port: 80, protocol: tcp, class: sourceClassIndex.pod, client: 5n, ...more });
}

/** The counters that grew meanwhile. */
function counted(run: () => unknown): Readonly<Record<string, number>> {
  const before = maps.counters(1);
  run();
  const after = Object.entries(maps.counters(1)).map(([name, value]) => [name, value - (before[name] ?? 0)] as const);
  return Object.fromEntries(after.filter(([, grown]) => grown !== 0));
}

describe('which frontend', () => {
  test.each<[string, Partial<PickRequest>, string]>([
    ['its address, port and protocol', {}, 'forward'],
    ['another port of a cluster IP', { port: 81 }, 'reject'],
    ['another protocol', { protocol: udp }, 'reject'],
    ['an address of the service CIDR without a service', { destination: '10.96.0.2' }, 'drop'],
    ['the last address of the service CIDR', { destination: '10.96.255.255' }, 'drop'],
    ['an address outside', { destination: '10.97.0.1' }, 'pass'],
    ['an IPv6 address', { destination: 'fd00::1' }, 'pass'],
  ])('%s', (_what, request, verdict) => {
    maps.guard(vip);
    expect(ask(request).verdict).toBe(verdict);
  });

  test('two service CIDRs, and none', () => {
    maps.guard('10.90.0.1');
    const second = { ...guardFields(0, '10.96.0.0/16'), ...guardFields(1, 'fd00:10:96::/112') };
    maps.configure({ guards: 2, ...second });
    expect(ask({ destination: 'fd00:10:96::ffff' }).verdict).toBe('drop');
    expect(ask({ destination: 'fd00:10:96::1:0' }).verdict).toBe('pass');
    expect(ask({ destination: '10.90.0.1' }).verdict).toBe('pass');
    maps.configure({ guards: 1, ...second });
    expect(ask({ destination: 'fd00:10:96::ffff' }).verdict).toBe('pass');
    maps.configure({ guard_all: 1, ...second });
    expect(ask({ destination: '10.96.0.2' }).verdict).toBe('pass');
    expect(ask({ destination: '10.90.0.1' }).verdict).toBe('reject');
  });

  test('a NodePort answers at node addresses that are meant for it; an address of its own beats it', () => {
    maps.frontend({ ...frontend, address: 'nodePort', port: 30_080 });
    maps.nodeAddress(node);
    maps.nodeAddress('192.0.2.2', 0);
    const at = (destination: string): string => ask({ destination, port: 30_080 }).verdict;
    expect([node, '192.0.2.2', '192.0.2.3'].map(at)).toEqual(['forward', 'pass', 'pass']);
    maps.frontend({ ...frontend, address: node, port: 30_080, actions: actionsFor(drop) });
    expect(at(node)).toBe('drop');
  });
});

describe('what is done', () => {
  test.each<[string, number, string[]]>([
    ['one for all', actionsFor(cluster), ['forward', 'forward', 'forward']],
    ['each class its own', actionsFor(reject, drop, local), ['reject', 'drop', 'forward']],
    ['the other way round', actionsFor(local, reject, drop), ['forward', 'reject', 'drop']],
  ])('%s', (_what, bits, verdicts) => {
    maps.frontend({ ...frontend, actions: bits });
    const { pod, node: own, outside } = sourceClassIndex;
    expect([pod, own, outside].map((source) => ask({ class: source }).verdict)).toEqual(verdicts);
  });

  test('the local set has its own endpoints, and masquerade is returned', () => {
    maps.frontend({ ...frontend, actions: actionsFor(local | masqueradeBit, cluster, cluster | masqueradeBit) });
    const picks = [0, 0.999].map((part) => ask({ random: Math.floor(part * 2 ** 32) }).endpoint);
    expect(picks).toEqual([11, 11]);
    const { pod, node: own, outside } = sourceClassIndex;
    expect([pod, own, outside].map((source) => ask({ class: source }).masquerade)).toEqual([true, false, true]);
  });

  test('a set that is empty already: reject, and drop for the local one', () => {
    maps.publish(1, 'cluster_set', 0n);
    expect(ask().verdict).toBe('reject');
    maps.frontend({ ...frontend, actions: actionsFor(local) });
    maps.publish(1, 'local_set', 0n);
    expect(ask().verdict).toBe('drop');
  });

  test('the number given leads to each endpoint in turn', () => {
    const picks = [0, 0.49, 0.5, 0.999_999].map((part) => ask({ random: Math.floor(part * 2 ** 32) }).address);
    expect(picks).toEqual(['10.244.0.10', '10.244.0.10', '10.244.0.11', '10.244.0.11']);
  });
});

describe('source ranges', () => {
  const restricted = frontendFlags.sourceRanges | frontendFlags.socketsPass;

  test.each<[string, string | bigint, string]>([
    ['inside', '198.51.100.7', 'forward'],
    ['outside', '198.51.101.7', 'drop'],
    ['inside another service', '203.0.113.1', 'drop'],
    ['a socket, whose address is unknown', 5n, 'pass'],
  ])('a client %s', (_what, client, verdict) => {
    maps.frontend({ ...frontend, actions: actionsFor(cluster) | restricted });
    maps.sourceRange(1, '198.51.100.0/24');
    maps.sourceRange(2, '203.0.113.0/24');
    expect(ask({ client }).verdict).toBe(verdict);
  });

  test('come before everything else, and are counted', () => {
    maps.frontend({ ...frontend, actions: actionsFor(reject) | restricted });
    expect(counted(() => ask({ client: '203.0.113.1' }))).toEqual({ source_range: 1 });
    expect(ask({ client: '203.0.113.1' }).verdict).toBe('drop');
  });

  test('sockets pass by what is for nftables, packets do not', () => {
    maps.frontend({ ...frontend, actions: actionsFor(cluster) | frontendFlags.socketsPass });
    expect(counted(() => ask())).toEqual({});
    expect(ask().verdict).toBe('pass');
    expect(ask({ client: '203.0.113.1' }).verdict).toBe('forward');
  });
});

describe('a reader that comes between two stores', () => {
  test.each<[string, () => void]>([
    ['the slot is another service’s now', () => maps.slots(2, 64, [10])],
    ['the endpoint is another service’s now', () => maps.endpoint(10, { address: '10.244.0.99', port: 1, service: 2 })],
    ['the endpoint is dead', () => maps.kill(10)],
    ['the frontend is of the service that had the id before', () => maps.frontend({ ...frontend, cookie: 6 })],
    ['the service is not written yet', () => maps.service(1, {})],
    ['the slots end before', () => maps.publish(1, 'cluster_set', (1n << 32n) | 0xffff_ffffn)],
    ['the service is beyond the map', () => maps.frontend({ ...frontend, service: 0xffff_ffff })],
  ])('%s: no endpoint rather than a wrong one, and nothing is counted', (_what, change) => {
    change();
    expect(counted(() => expect(ask().verdict).toBe('again'))).toEqual({});
  });
});

describe('while the agent writes', () => {
  test('an element that was another frontend’s when it was read: the right one is found, and counted', () => {
    maps.service(2, { cookie: 8 });
    maps.publish(2, 'cluster_set', maps.slots(2, 80, [20]));
    maps.frontend({ ...frontend, service: 2, cookie: 8 });
    const value = (7n << 48n) | (BigInt(frontend.actions) << 32n) | 1n;
    const before = maps.counters(2);
    expect(
      counted(() => expect(ask({ meanwhile: { after: 'frontend', to: 'frontend', value } }).endpoint).toBe(10)),
    ).toEqual({ connections: 1 });
    expect(maps.counters(2)).toEqual(before);
  });

  test('a frontend deleted before the choice is not used', () => {
    const meanwhile = { after: 'slot', to: 'frontend', value: (5n << 48n) | 3n } as const;
    expect(counted(() => expect(ask({ meanwhile }).verdict).toBe('again'))).toEqual({});
  });

  test('slots that are another set’s now are not read as of the set that was', () => {
    maps.endpoint(12, { address: '10.244.0.12', port: 8080, service: 1 });
    maps.slots(1, 64, [12, 12]);
    const value = maps.slots(1, 72, [10]);
    expect(ask({ meanwhile: { after: 'set', to: 'service', index: 1, word: 0, value } }).endpoint).toBe(10);
    maps.frontend({ ...frontend, actions: actionsFor(local) });
    maps.publish(1, 'local_set', maps.slots(1, 68, [12]));
    expect(ask({ meanwhile: { after: 'set', to: 'service', index: 1, word: 1, value } }).endpoint).toBe(10);
  });

  test('an endpoint whose record is given away is taken whole', () => {
    const reused = { address: '10.244.0.77', port: 9090, service: 1, generation: 2 };
    maps.endpoint(10, reused);
    const [, , value = 0n] = new BigUint64Array(
      (maps.map('endpoints').lookup(index(10)) ?? new Uint8Array()).slice().buffer,
    );
    maps.endpoint(10, { ...reused, port: 8080, generation: 1 });
    const answer = ask({ meanwhile: { after: 'endpoint', to: 'endpoint', index: 10, word: 2, value } });
    expect(answer).toMatchObject({ verdict: 'forward', ...reused });
  });

  test('an endpoint that dies before it is read is not chosen', () => {
    const meanwhile = { after: 'slot', to: 'endpoint', index: 10, word: 2, value: 0n } as const;
    expect(ask({ meanwhile }).verdict).toBe('again');
  });
});

describe('affinity', () => {
  beforeEach(() => {
    maps.service(1, { cookie: 7, affinity_seconds: 100 });
    maps.publish(1, 'cluster_set', maps.slots(1, 64, [10, 11]));
    maps.publish(1, 'local_set', maps.slots(1, 68, [11]));
  });
  const last = 2 ** 32 - 1;

  test.each<[string, string | bigint, string | bigint, boolean]>([
    ['the same address', '198.51.100.1', '198.51.100.1', true],
    ['another address', '198.51.100.1', '198.51.100.2', false],
    ['the same namespace', 5n, 5n, true],
    ['another namespace', 5n, 6n, false],
    ['an address that looks like a namespace', 5n, '::500:0:0:0', false],
  ])('%s', (_what, first, second, isKept) => {
    expect(ask({ client: first, random: 0 }).endpoint).toBe(10);
    expect(ask({ client: second, random: last }).endpoint).toBe(isKept ? 10 : 11);
  });

  test.each<[string, () => void]>([
    ['is dead', () => maps.kill(10)],
    [
      'is of another generation',
      () => maps.endpoint(10, { address: '10.244.0.12', port: 80, service: 1, generation: 2 }),
    ],
    ['is another service’s', () => maps.endpoint(10, { address: '10.244.0.12', port: 80, service: 2 })],
    [
      'has left the set',
      () => maps.endpoint(10, { address: '10.244.0.10', port: 8080, service: 1, flags: alive | inLocal }),
    ],
  ])('the client gets another endpoint when its own %s', (_what, change) => {
    expect(ask({ random: 0 }).endpoint).toBe(10);
    change();
    expect(ask({ random: last }).endpoint).toBe(11);
    maps.endpoint(10, { address: '10.244.0.10', port: 8080, service: 1, generation: 3, flags: alive | inCluster });
    expect(ask({ random: 0 }).endpoint).toBe(11);
  });

  test('an endpoint in the cluster set is not one of the local set', () => {
    expect(ask({ random: 0 }).endpoint).toBe(10);
    maps.endpoint(10, { address: '10.244.0.10', port: 8080, service: 1, flags: alive | inCluster });
    maps.frontend({ ...frontend, actions: actionsFor(local) });
    expect(ask({ random: 0 }).endpoint).toBe(11);
  });

  test('is of a service, whichever frontend; another service has its own', () => {
    maps.frontend({ ...frontend, port: 81 });
    expect(ask({ random: 0 }).endpoint).toBe(10);
    expect(ask({ port: 81, random: last }).endpoint).toBe(10);
    expect(maps.size('affinity')).toBe(1);
  });

  test('ends when the client was away for longer than the timeout', () => {
    expect(ask({ random: 0 }).endpoint).toBe(10);
    maps.service(1, { cookie: 7, affinity_seconds: 1 });
    maps.publish(1, 'cluster_set', maps.slots(1, 64, [10, 11]));
    const { keys, values } = maps.map('affinity').entries();
    new DataView(values.buffer, values.byteOffset).setBigUint64(8, 1n, true);
    maps.map('affinity').update(keys, values);
    expect(ask({ random: last }).endpoint).toBe(11);
  });

  test('a client that was seen is remembered as seen now', () => {
    ask({ random: 0 });
    const { keys, values } = maps.map('affinity').entries();
    const seen = new DataView(values.buffer, values.byteOffset).getBigUint64(8, true);
    new DataView(values.buffer, values.byteOffset).setBigUint64(8, seen - 50_000_000_000n, true);
    maps.map('affinity').update(keys, values);
    expect(ask({ random: last }).endpoint).toBe(10);
    const after = maps.map('affinity').lookup(keys) ?? new Uint8Array();
    expect(new DataView(after.buffer, after.byteOffset).getBigUint64(8, true)).toBeGreaterThan(seen);
  });
});

describe('a flow that has had an endpoint', () => {
  test.each<[string, () => void, number]>([
    ['keeps it', () => undefined, 11],
    ['keeps it outside the set', () => maps.publish(1, 'cluster_set', maps.slots(1, 72, [10])), 11],
    ['gets another when it is dead', () => maps.kill(11), 10],
    [
      'gets another when the id is another’s',
      () => maps.endpoint(11, { address: '10.244.0.9', port: 1, service: 2 }),
      10,
    ],
    [
      'gets another when it is of another generation',
      () => maps.endpoint(11, { address: '10.244.0.9', port: 1, service: 1, generation: 2 }),
      10,
    ],
    ['is refused when the frontend is', () => maps.frontend({ ...frontend, actions: actionsFor(reject) }), 0],
  ])('%s', (_what, change, endpoint) => {
    change();
    const answer = ask({ random: 0, kept: { endpoint: 11, generation: 1 } });
    expect(answer.verdict).toBe(endpoint === 0 ? 'reject' : 'forward');
    if (endpoint !== 0) expect(answer).toMatchObject({ endpoint, isKept: endpoint === 11 });
  });

  test('is not counted again', () => {
    expect(counted(() => ask({ kept: { endpoint: 11, generation: 1 } }))).toEqual({});
    expect(counted(() => ask())).toEqual({ connections: 1 });
  });
});
