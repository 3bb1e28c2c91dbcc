import { setTimeout as sleep } from 'node:timers/promises';
import { ipFamilies, type IpFamily, parseIp, type Protocol } from '@switchyard/core';
import { until } from '@switchyard/core/testing';
import {
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabPod,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countPodFlows } from '../../src/index.ts';
import { insertFlows } from '../insert-flows.ts';

const { signal } = new AbortController();
let lab: Lab;
let node: LabNode;
let pod: LabPod;
let client: Prober;
let netns: string;

beforeAll(async () => {
  lab = await createLab({ name: 'npods', nodes: 1, ipFamilies }, signal);
  [node] = lab.nodes as [LabNode];
  pod = await lab.addPod(node, 'pod');
  netns = `/run/netns/${node.namespace}`;
  startEchoServer(pod, { pod: 'pod', tcp: [8080], udp: [8080, 8081] });
  client = await createProber(lab.client, signal);
  await using near = await createProber(node, signal);
  const server = { protocol: 'udp', address: pod.addresses.IPv4 ?? '', port: 8081 } as const;
  await until('the echo server', async () => (await near.probe(server)).status === 'answered');
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

const ports = (protocol: Protocol, ...numbers: readonly number[]) =>
  new Map<Protocol, ReadonlySet<number>>([[protocol, new Set(numbers)]]);

const send = (ipFamily: IpFamily, { to, sourcePort }: { readonly to: number; readonly sourcePort: number }) =>
  client.probe({ protocol: 'udp', address: node.addresses[ipFamily] ?? '', port: to, sourcePort, timeout: 2000 });

test('a node that tracks nothing says so', () => {
  expect(() => countPodFlows({ addresses: [parseIp('10.96.10.10')], ports: ports('UDP', 53) }, netns)).toThrow(
    'the kernel tracks no connections on this node',
  );
});

test.each(ipFamilies)('UDP flows of %s behind a translation count while they are in use', async (ipFamily) => {
  const address = pod.addresses[ipFamily] ?? '';
  const behind = ipFamily === 'IPv4' ? address : `[${address}]`;
  const rules = [8080, 8081].map((to) => `udp dport ${to - 3000} dnat to ${behind}:${to};`).join(' ');
  const table = `${ipFamily === 'IPv4' ? 'ip' : 'ip6'} flows`;
  const ruleset = `table ${table} { chain nat { type nat hook prerouting priority dstnat; ${rules} }\n}`;
  const loaded = await node.run('nft', ['-f', '-'], { stdin: ruleset });
  expect(loaded.stderr).toBe('');
  const pods = { addresses: [parseIp(address)], ports: ports('UDP', 8080) };
  for (const sourcePort of [40_001, 40_002, 40_003]) {
    expect(await send(ipFamily, { to: 5080, sourcePort })).toMatchObject({ status: 'answered' });
  }
  await send(ipFamily, { to: 5081, sourcePort: 40_004 }); // another port
  expect(countPodFlows(pods, netns)).toEqual({ UDP: 3 });
  expect(countPodFlows({ ...pods, ports: ports('UDP', 8080, 8081) }, netns)).toEqual({ UDP: 4 });
  await sleep(2_000);
  for (let round = 0; round < 2; round++) {
    await send(ipFamily, { to: 5080, sourcePort: 40_001 });
    await sleep(1_200);
  }
  expect(countPodFlows(pods, netns)).toEqual({ UDP: 1 }); // its time-out is the long one now
  await sleep(3_000);
  expect(countPodFlows(pods, netns)).toEqual({ UDP: 0 });
});

test('SCTP associations count until both sides have shut them down', () => {
  const pods = { addresses: [parseIp('10.96.10.10')], ports: ports('SCTP', 9, 10) };
  insertFlows({ netns, protocol: 'sctp', count: 3, destinationPort: 9 });
  insertFlows({ netns, protocol: 'sctp', count: 2, destinationPort: 10, sctpState: 5 }); // SHUTDOWN_SENT
  insertFlows({ netns, protocol: 'sctp', count: 1, destinationPort: 11 });
  expect(countPodFlows(pods, netns)).toEqual({ SCTP: 5 });
  insertFlows({ netns, protocol: 'sctp', count: 4, destinationPort: 12, sctpState: 1 }); // CLOSED
  expect(countPodFlows({ ...pods, ports: ports('SCTP', 12) }, netns)).toEqual({ SCTP: 0 });
});

test('both protocols at once, and 20,000 other entries', () => {
  insertFlows({ netns, protocol: 'udp', count: 20_000, destinationPort: 9 });
  const asked = new Map<Protocol, ReadonlySet<number>>([...ports('UDP', 5353), ...ports('SCTP', 9)]);
  expect(countPodFlows({ addresses: [parseIp('10.96.10.10'), parseIp('fd00::7')], ports: asked }, netns)).toEqual({
    UDP: 0,
    SCTP: 3,
  });
});
