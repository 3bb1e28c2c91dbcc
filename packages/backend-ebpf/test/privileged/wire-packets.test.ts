import { type IpFamily, seconds } from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import { type BpfObject, loadBpfObject, testRun } from '@switchyard/native';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { objectFile } from '../../src/kernel/programs/object-files.ts';
import { defaultWireMarks } from '../../src/kernel/wire/guard-rules.ts';
import { type ActionText, mapped, WireMaps } from './wire-maps.ts';

// The program alone: packets in, verdict and mark out. No interface, no rules; the namespace is for conntrack's entries.

const namespace = 'swy-wirep-node';
const netns = `/run/netns/${namespace}`;
const runner = createCommandRunner();
const { signal } = new AbortController();

const addresses: Readonly<
  Record<IpFamily, { readonly service: string; readonly endpoint: string; readonly client: string }>
> = {
  IPv4: { service: '192.0.2.1', endpoint: '192.0.2.2', client: '192.0.2.3' },
  IPv6: { service: '2001:db8::1', endpoint: '2001:db8::2', client: '2001:db8::3' },
};
const ports = { open: 80, none: 81, away: 82, other: 83 } as const;
/** Result of each port for outside. */
const actions: Readonly<Record<number, ActionText>> = { 80: 'cluster', 81: 'reject', 82: 'drop' };

const maps: Readonly<Record<IpFamily, WireMaps>> = { IPv4: new WireMaps(), IPv6: new WireMaps() };
const objects = new Map<IpFamily, BpfObject>();

beforeAll(async () => {
  await ip('netns', 'add', namespace);
  for (const family of ['IPv4', 'IPv6'] as const) {
    const { service, endpoint } = addresses[family];
    for (const [port, action] of Object.entries(actions)) {
      for (const protocol of ['tcp', 'udp'] as const) {
        maps[family].add({
          frontends: [[service, Number(port)]],
          protocol,
          actions: { pod: action, node: action, outside: action },
          endpoints: [[endpoint, 8080, 'far']],
        });
      }
    }
    const { service: service_mark, reject: reject_mark } = defaultWireMarks;
    const constants = { family: family === 'IPv4' ? 4 : 6, service_mark, reject_mark };
    objects.set(
      family,
      loadBpfObject(objectFile('wire'), { maps: new Map(Object.entries(maps[family].maps)), constants }),
    );
  }
});

afterAll(async () => {
  for (const object of objects.values()) object[Symbol.dispose]();
  for (const one of Object.values(maps)) one[Symbol.dispose]();
  await ip('netns', 'del', namespace);
});

async function ip(...args: readonly string[]): Promise<void> {
  const { exitCode, stderr } = await runner.run('ip', args, { timeout: seconds(10), signal });
  expect(exitCode, stderr).toBe(0);
}

let lastPort = 20_000;

const number16 = (value: number): readonly number[] => [value >> 8, value & 0xff];
/** Of a TCP header, after both numbers. */
const tcpRest = (flags: number): readonly number[] => [0x50, flags, 0xff, 0xff, 0, 0, 0, 0];
const tcpPacket = (port: number, flags: number): readonly number[] => {
  const head = [...number16(++lastPort), ...number16(port)];
  return head.concat([0, 0, 0, 1, 0, 0, 0, 0], tcpRest(flags));
};
const udpPacket = (port: number): readonly number[] => [...number16(++lastPort), ...number16(port), 0, 8, 0, 0];

const flag = { fin: 0x01, syn: 0x02, rst: 0x04, ack: 0x10, ece: 0x40, cwr: 0x80 } as const;
const syn = (port: number = ports.open): readonly number[] => tcpPacket(port, flag.syn);

interface Ipv4 {
  readonly options?: readonly number[];
  /** Flags and offset. */
  readonly fragment?: number;
}
const ipv4 = (
  protocol: number,
  payload: readonly number[],
  { options = [], fragment = 0 }: Ipv4 = {},
): readonly number[] => {
  const { client, service } = addresses.IPv4;
  const length = 20 + options.length;
  const head = [
    0x40 | (length / 4),
    0,
    ...number16(length + payload.length),
    0,
    1,
    ...number16(fragment),
    64,
    protocol,
    0,
    0,
  ];
  return [...head, ...mapped(client).slice(12), ...mapped(service).slice(12), ...options, ...payload];
};

/** Extension headers: what each is, and its bytes from the third on. */
const ipv6 = (
  protocol: number,
  payload: readonly number[],
  extensions: readonly (readonly [number, readonly number[]])[] = [],
): readonly number[] => {
  const { client, service } = addresses.IPv6;
  const chain = extensions.flatMap(([kind, rest], index) => {
    const next = extensions[index + 1]?.[0] ?? protocol;
    return [next, kind === 44 ? 0 : (rest.length + 2) / 8 - 1, ...rest];
  });
  const length = number16(chain.length + payload.length);
  return [
    0x60,
    0,
    0,
    0,
    ...length,
    extensions[0]?.[0] ?? protocol,
    64,
    ...mapped(client),
    ...mapped(service),
    ...chain,
    ...payload,
  ];
};

const [tcp, udp, icmp, sctp] = [6, 17, 1, 132];
const padding = (bytes: number): readonly number[] => [1, bytes - 4, ...Array.from({ length: bytes - 4 }, () => 0)];
/** Hop-by-hop options, routing, destination options of eight bytes; a fragment header by its offset and flags. */
const hopByHop: readonly [number, readonly number[]] = [0, padding(8).slice(0, 6)];
const routing: readonly [number, readonly number[]] = [43, [0, 0, 0, 0, 0, 0]];
const destination: readonly [number, readonly number[]] = [60, padding(16).slice(0, 14)];
const fragment = (offsetAndFlags: number): readonly [number, readonly number[]] => [
  44,
  [...number16(offsetAndFlags), 0, 0, 0, 1],
];

type Outcome = 'untouched' | 'service' | 'reject' | 'dropped';

function send(
  family: IpFamily,
  packet: readonly number[],
  link: { readonly mac?: number; readonly type?: number; readonly mark?: number } = {},
): Outcome {
  const { mac = 0, type = family === 'IPv4' ? 0x0800 : 0x86dd, mark: before = 0 } = link;
  const data = Uint8Array.from([0, 0, 0, 0, 0, mac, 0, 0, 0, 0, 0, 0, ...number16(type), ...packet]);
  const start = new Uint8Array(192);
  new DataView(start.buffer).setUint32(8, before, true);
  const program = objects.get(family)!.programs.get('lb_in')!;
  const { returnValue, context } = testRun(program, { data, context: start, netns });
  if (returnValue === 2) return 'dropped';
  expect(returnValue | 0).toBe(-1); // never the end of the chain of programs
  const mark = new DataView(context.buffer, context.byteOffset).getUint32(8, true);
  expect([0, defaultWireMarks.service, defaultWireMarks.reject]).toContain(mark);
  return mark === 0 ? 'untouched' : mark === defaultWireMarks.service ? 'service' : 'reject';
}

const wraps = {
  IPv4: (protocol: number, payload: readonly number[]) => ipv4(protocol, payload),
  IPv6: (protocol: number, payload: readonly number[]) => ipv6(protocol, payload),
};

describe.each(['IPv4', 'IPv6'] as const)('%s', (family) => {
  const wrap = wraps[family];
  test.each<readonly [sentence: string, packet: () => readonly number[], Outcome]>([
    ['a SYN opens', () => wrap(tcp, syn()), 'service'],
    [
      'a SYN that offers congestion notification opens',
      () => wrap(tcp, tcpPacket(80, flag.syn | flag.ece | flag.cwr)),
      'service',
    ],
    ['a datagram opens', () => wrap(udp, udpPacket(80)), 'service'],
    ['an ACK without a connection is marked, so that it is reset', () => wrap(tcp, tcpPacket(80, flag.ack)), 'service'],
    ['so is a SYN with ACK', () => wrap(tcp, tcpPacket(80, flag.syn | flag.ack)), 'service'],
    ['a SYN to a Service without endpoints is refused', () => wrap(tcp, syn(ports.none)), 'reject'],
    ['a datagram to it too', () => wrap(udp, udpPacket(ports.none)), 'reject'],
    ['a SYN for a Service without local endpoints is dropped', () => wrap(tcp, syn(ports.away)), 'dropped'],
    ['another port is not touched', () => wrap(tcp, syn(ports.other)), 'untouched'],
    ['ICMP is not touched', () => wrap(icmp, [8, 0, 0, 0, 0, 1, 0, 1]), 'untouched'],
    ['SCTP is not touched', () => wrap(sctp, syn()), 'untouched'],
    ['a header that is cut off is not touched', () => wrap(udp, [0, 80, 0]), 'untouched'],
    ['a TCP header that is cut off opens nothing', () => wrap(tcp, syn().slice(0, 12)), 'service'],
  ])('%s', (_, packet, outcome) => {
    expect(send(family, packet())).toBe(outcome);
  });

  test('a flow that is known is not touched again', () => {
    const packet = wrap(tcp, syn());
    expect([send(family, packet), send(family, packet)]).toEqual(['service', 'untouched']);
  });

  test('what was refused at the port of a bridge stays so at the bridge, and is counted once', () => {
    const packet = wrap(tcp, syn(ports.none));
    const counted = (): number => [1, 2, 3, 4, 5, 6].reduce((sum, id) => sum + maps[family].counters(id)[2]!, 0);
    const before = counted();
    expect([send(family, packet), send(family, packet, { mark: defaultWireMarks.reject })]).toEqual([
      'reject',
      'reject',
    ]);
    expect(counted()).toBe(before + 1);
  });

  test("another machine's packets and another family's are not touched", () => {
    expect(send(family, wrap(tcp, syn()), { mac: 1 })).toBe('untouched');
    expect(send(family, wrap(tcp, syn()), { type: family === 'IPv4' ? 0x86dd : 0x0800 })).toBe('untouched');
    expect(send(family, wrap(tcp, syn()), { type: 0x8100 })).toBe('untouched');
  });
});

test.each<readonly [sentence: string, packet: () => readonly number[], Outcome]>([
  ['options are no obstacle', () => ipv4(tcp, syn(), { options: [1, 1, 1, 1, 7, 3, 4, 0] }), 'service'],
  [
    'as many as there can be',
    () => ipv4(udp, udpPacket(80), { options: Array.from({ length: 40 }, () => 1) }),
    'service',
  ],
  ['a first fragment opens', () => ipv4(udp, udpPacket(80), { fragment: 0x2000 }), 'service'],
  ['a later one is not touched', () => ipv4(udp, udpPacket(80), { fragment: 0x2001 }), 'untouched'],
  ['nor the last', () => ipv4(udp, udpPacket(80), { fragment: 0x0100 }), 'untouched'],
])('IPv4: %s', (_, packet, outcome) => {
  expect(send('IPv4', packet())).toBe(outcome);
});

test.each<readonly [sentence: string, packet: () => readonly number[], Outcome]>([
  ['extension headers are skipped', () => ipv6(tcp, syn(), [hopByHop, routing, destination]), 'service'],
  ['a first fragment opens', () => ipv6(udp, udpPacket(80), [hopByHop, fragment(0x0001)]), 'service'],
  ['a later one is not touched', () => ipv6(udp, udpPacket(80), [fragment(0x0009)]), 'untouched'],
  [
    'six headers are read',
    () =>
      ipv6(
        tcp,
        syn(),
        Array.from({ length: 6 }, () => destination),
      ),
    'service',
  ],
  [
    'seven are not',
    () =>
      ipv6(
        tcp,
        syn(),
        Array.from({ length: 7 }, () => destination),
      ),
    'untouched',
  ],
  ['an unknown one ends it', () => ipv6(tcp, syn(), [[135, [0, 0, 0, 0, 0, 0]]]), 'untouched'],
])('IPv6: %s', (_, packet, outcome) => {
  expect(send('IPv6', packet())).toBe(outcome);
});
