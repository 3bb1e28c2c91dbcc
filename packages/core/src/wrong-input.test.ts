import { describe, expect, test } from 'vitest';
import * as core from './index.ts';
import * as manifests from './manifests/index.ts';
import { service, slice, strictTraits, tableOf, tableOptions } from './testing/index.ts';

// Programs in plain JavaScript, and casts, get past the types. A wrong argument must end in an error with a code: a
// TypeError reads like a defect of this package, and an answer would be believed.

type Call = (...args: readonly unknown[]) => unknown;

/** As a caller without types has it. */
function untyped(value: unknown): Call {
  return value as Call;
}

const values: readonly unknown[] = [
  undefined,
  null,
  0,
  42,
  -1,
  Number.NaN,
  10n,
  true,
  '',
  'x',
  '010.1.1.1',
  '10.0.0.0',
  '10.0.0.0/33',
  [],
  [undefined],
  ['x'],
  {},
  { kind: 'x' },
  new Map(),
  new Uint8Array(3),
  () => undefined,
];

async function errorOf(call: Call, args: readonly unknown[]): Promise<unknown> {
  try {
    const result = String(call).startsWith('class') ? Reflect.construct(call, args) : call(...args);
    if (result instanceof Promise) await result;
    return undefined;
  } catch (error) {
    return error;
  }
}

const functions = Object.entries({ ...core, ...manifests }).filter(([, value]) => typeof value === 'function');

test.each(functions)(
  '%s with a wrong or a missing argument throws an error with a code, or nothing',
  async (_, call) => {
    for (const args of [
      [],
      ...values.map((value) => [value]),
      ...values.map((value) => [value, value, value, value]),
    ]) {
      const error = await errorOf(untyped(call), args);
      if (error !== undefined) expect(error, args.map(String).join()).toBeInstanceOf(core.DataplaneError);
    }
  },
);

const table = tableOf({ services: [service('shop/cart')] });
const state = new core.ClusterState({ nodeName: core.nodeName('n1') });
const flow = {
  from: 'outside',
  source: '192.0.2.1',
  destination: '10.96.0.10',
  destinationPort: 80,
  protocol: 'TCP',
  destinationIsLocal: false,
};
const explain = (change: object): unknown => untyped(core.explain)(table, { ...flow, ...change }, strictTraits);
const build = (change: object): unknown =>
  untyped(core.buildTable)(state, 'all', undefined, { ...tableOptions({}), ...change });
const apply = (...events: readonly unknown[]): unknown => state.apply(events as readonly core.ClusterEvent[]);

describe('explain', () => {
  test('takes the flow that the rows below change', () =>
    expect(explain({})).toMatchObject({ service: 'shop/cart:/TCP' }));

  test.each([
    [{ destination: '010.1.1.1' }, 'explain: flow.destination must be an IP address, not "010.1.1.1"'],
    [{ source: 'FD00::1' }, 'explain: flow.source must be canonical (fd00::1; parseIp returns it), not "FD00::1"'],
    [{ source: 'fd00::1' }, 'explain: flow.source must be of the family of the destination 10.96.0.10, not "fd00::1"'],
    [{ destinationPort: '80' }, 'explain: flow.destinationPort must be a port (1-65535), not "80"'],
    [{ destinationPort: 0 }, 'explain: flow.destinationPort must be a port (1-65535), not 0'],
    [{ protocol: 'tcp' }, 'explain: flow.protocol must be "TCP" or "UDP" or "SCTP", not "tcp"'],
    [{ from: 'external' }, 'explain: flow.from must be "pod" or "node" or "outside", not "external"'],
    [{ destinationIsLocal: undefined }, 'explain: flow.destinationIsLocal must be true or false, not undefined'],
    [{ isSentHere: 1 }, 'explain: flow.isSentHere must be true or false or undefined, not 1'],
    [{ incomingInterface: null }, 'explain: flow.incomingInterface must be a text or undefined, not null'],
  ])('%j', (change, message) =>
    expect(() => explain(change)).toThrow(new core.UsageError('argument.invalid', message)),
  );

  test('without a table or with traits that are none', () => {
    expect(() => untyped(core.explain)({}, flow, strictTraits)).toThrow('explain: table.ipFamily must be IPv4 or IPv6');
    expect(() => untyped(core.explain)(table, flow, { ...strictTraits, translation: 'x' })).toThrow(
      'explain: traits.translation must be "packets" or "sockets", not "x"',
    );
  });
});

describe('buildTable', () => {
  test('takes the options that the rows below change', () => expect(build({})).toMatchObject({ ipFamily: 'IPv4' }));

  test.each([
    [{ ipFamily: 'ipv4' }, 'options.ipFamily must be IPv4 or IPv6, not "ipv4"'],
    [{ nodeName: undefined }, 'options.nodeName must be a text, not undefined'],
    [{ masqueradeAll: 'no' }, 'options.masqueradeAll must be true or false, not "no"'],
    [{ terminatingFallback: true }, 'options.terminatingFallback must be "on" or "off", not true'],
    [{ externalIps: undefined }, 'options.externalIps must be "forward" or "ignore", not undefined'],
    [{ routerIpMode: 'VIP' }, 'options.routerIpMode must be "localOnly" or "asVip" or undefined, not "VIP"'],
    [{ podDetector: undefined }, 'options.podDetector must be an object, not undefined'],
    [{ podDetector: { kind: 'cidr', cidr: '10.1.2.3/8' } }, 'options.podDetector.cidr must be canonical (10.0.0.0/8;'],
    [{ podDetector: { kind: 'interface' } }, 'options.podDetector.name must be a text, not undefined'],
    [{ podDetector: { kind: 'bridge' } }, 'options.podDetector.kind must be "none" or "cidr" or '],
    [{ nodeIp: '10.0.0.01' }, 'options.nodeIp must be an IP address, not "10.0.0.01"'],
    [{ nodePortCidrs: '0.0.0.0/0' }, 'options.nodePortCidrs must be a list, not "0.0.0.0/0"'],
    [{ nodePortCidrs: ['primary'] }, 'options.nodePortCidrs must be a CIDR such as 10.0.0.0/8, not "primary"'],
    [{ apiServers: [{ address: '10.0.0.1', port: 0 }] }, 'options.apiServers: port must be a port (1-65535), not 0'],
  ])('%j', (change, message) => expect(() => build(change)).toThrow(`buildTable: ${message}`));

  test('without options, without state, with a wrong set of Services or the table of the other family', () => {
    const options = tableOptions({});
    const call = untyped(core.buildTable);
    expect(() => call(state, 'all', undefined)).toThrow('buildTable: options must be an object, not undefined');
    expect(() => call({}, 'all', undefined, options)).toThrow('buildTable: state.services must be an object with');
    expect(() => call(state, ['shop/cart'], undefined, options)).toThrow("buildTable: dirty must be 'all' or a set");
    expect(() => call(state, 'all', { ...table, ipFamily: 'IPv6' }, options)).toThrow(
      'buildTable: previous.ipFamily must be IPv4 as in options, not "IPv6"',
    );
  });
});

describe('ClusterState.apply', () => {
  const cart = service('shop/cart');

  test.each([
    [{ kind: 'upsert', resource: 'Pod', item: {} }, 'event.resource must be Service or EndpointSlice or Node'],
    [{ kind: 'ADDED', resource: 'Service', item: cart }, 'event.kind must be upsert, replace or delete, not "ADDED"'],
    [{ kind: 'delete', resource: 'Service', item: cart }, 'event.name must be the key of a record, not undefined'],
    [{ kind: 'replace', resource: 'Service', items: cart }, 'event.items must be a list of records, not an object'],
    [
      { kind: 'upsert', resource: 'Service', item: { metadata: { name: 'cart' }, spec: {} } },
      'key of a record of Service must be a text (readManifest and the projections make records of API objects), not undefined',
    ],
    [{ kind: 'upsert', resource: 'Node', item: { name: 'n1' } }, 'addresses of a record of Node must be a list'],
    [
      { kind: 'upsert', resource: 'EndpointSlice', item: { ...slice('shop/cart'), service: undefined } },
      'service of a record of EndpointSlice must be the key of a Service',
    ],
  ])('%j', (event, message) => expect(() => apply(event)).toThrow(message));

  test('applies nothing of a batch with a wrong event', () => {
    const right = { kind: 'upsert', resource: 'Service', item: cart };
    expect(() => apply(right, { ...right, item: undefined })).toThrow(core.UsageError);
    expect(state.services.size).toBe(0);
  });

  test('takes what readManifest returns, without a cast', () => {
    const { objects } = manifests.readManifest('{apiVersion: v1, kind: Node, metadata: {name: n1}}');
    const own = new core.ClusterState({ nodeName: core.nodeName('n1') });
    own.apply(objects);
    expect([...own.nodes.keys()]).toEqual(['n1']);
  });
});

test.each([
  ['cidrContains', ['10.0.0.0/8', '010.1.1.1'], 'ip must be an IP address, not "010.1.1.1"'],
  ['cidrContains', ['10.0.0.0', '10.1.1.1'], 'cidr must be a CIDR such as 10.0.0.0/8, not "10.0.0.0"'],
  ['cidrsOverlap', ['10.0.0.0/8', 'x'], 'cidr must be a CIDR such as 10.0.0.0/8, not "x"'],
  ['ipToBytes', ['010.1.1.1'], 'ip must be an IP address, not "010.1.1.1"'],
  ['ipToBytes', ['::ffff:1.2.3.4'], 'ip must be an IP address, not "::ffff:1.2.3.4"'],
  ['hostCidr', ['10.1'], 'hostCidr: ip must be an IP address, not "10.1"'],
  ['everythingOf', ['ipv4'], 'everythingOf: ipFamily must be IPv4 or IPv6, not "ipv4"'],
  ['sourceClassOf', [table, '010.1.1.1', false], 'sourceClassOf: source must be an IP address, not "010.1.1.1"'],
  ['nodeName', [undefined], 'nodeName: text must be a text, not undefined'],
  ['serviceKey', ['shop', 7], 'serviceKey: name must be a text, not 7'],
  ['servicePortKey', ['shop/cart', 'http', 'tcp'], 'servicePortKey: protocol must be TCP, UDP or SCTP, not "tcp"'],
  ['servicePortParts', ['shop/cart'], 'servicePortParts: key must be namespace/name:port/TCP, not "shop/cart"'],
  ['parseCidr', [7], 'not a CIDR such as 10.0.0.0/8: 7'],
  ['parsePort', ['80'], 'not a port (1-65535): "80"'],
  ['parseGoDuration', [30], 'not a duration such as 30s or 1m30s: 30'],
  ['seconds', [''], 'not a time in seconds: ""'],
  ['ipv4Text', [new Uint8Array(5), 2], 'ipv4Text: bytes must be a Uint8Array with 4 bytes from 2'],
  ['mappedBytes', [new Uint8Array(5)], 'an IP address has 4 or 16 bytes, not 5'],
] as const)('%s%j', (name, args, message) => {
  expect(() => untyped(Object.fromEntries(functions)[name])(...args)).toThrow(message);
});
