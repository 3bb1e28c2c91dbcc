import { type IpFamily, ipFamilies, systemClock } from '@switchyard/core';
import {
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabPod,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFlowTable, type FlowTable, type TrackedFlow } from '../../src/index.ts';
import { insertFlows } from '../insert-flows.ts';

const { signal } = new AbortController();
let lab: Lab;
let node: LabNode;
let pod: LabPod;
let client: Prober;
let flows: FlowTable;
let netns: string;

/** Who asks, what it asks, and the pod behind it. */
function places(family: IpFamily) {
  const [from = '', to = '', behind = ''] = [lab.client, node, pod].map((host) => host.addresses[family]);
  return { from, to, behind };
}

beforeAll(async () => {
  lab = await createLab({ name: 'nflows', nodes: 1, ipFamilies }, signal);
  [node] = lab.nodes as [LabNode];
  pod = await lab.addPod(node, 'pod');
  netns = `/run/netns/${node.namespace}`;
  startEchoServer(pod, { pod: 'pod', tcp: [8080], udp: [8080, 8081] });
  startEchoServer(node, { pod: 'node', udp: [5999] });
  client = await createProber(lab.client, signal);
  const ruleset = `table inet flows {
    map targets { type inet_service : inet_service; }
    chain raw { type filter hook prerouting priority raw; udp dport 5309 ct zone set 7; }
    chain nat { type nat hook prerouting priority dstnat; ${ipFamilies.map(dnatRule).join('\n')} }
  }`;
  await node.run('nft', ['-f', '-'], { stdin: ruleset });
  for (let port = 5300; port <= 5310; port++) await forward(port, 8080);
  flows = createFlowTable({ clock: systemClock, netns });
  for (const family of ipFamilies) for (const port of [5300, 5999]) await untilAnswered(family, port);
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

function dnatRule(family: IpFamily): string {
  const ip = family === 'IPv4' ? 'ip' : 'ip6';
  return `meta l4proto { tcp, udp } dnat ${ip} to ${places(family).behind} : th dport map @targets;`;
}

/** Sends what comes for `port` to `target` of the pod from now on. */
async function forward(port: number, target: number): Promise<void> {
  await node.run('nft', [`delete element inet flows targets { ${port} }`]);
  const added = await node.run('nft', [`add element inet flows targets { ${port} : ${target} }`]);
  if (added.exitCode !== 0) throw new Error(added.stderr);
}

async function untilAnswered(family: IpFamily, port: number): Promise<void> {
  for (let round = 0; round < 100; round++) {
    if ((await send(family, port, 30_000 + round, 200)) === 'answered') return;
  }
  throw new Error(`no answer on ${family} port ${port}`);
}

async function send(family: IpFamily, port: number, sourcePort: number, timeout = 1500): Promise<string> {
  const address = places(family).to;
  return (await client.probe({ protocol: 'udp', address, port, sourcePort, timeout })).status;
}

async function listed(family: IpFamily, table: FlowTable = flows, ports?: readonly number[]) {
  const found: TrackedFlow[] = [];
  const query = { ipFamily: family, ...(ports === undefined ? {} : { destinationPorts: new Set(ports) }) };
  for await (const part of table.list(query, signal)) found.push(...part);
  return found;
}

async function flowFrom(family: IpFamily, sourcePort: number): Promise<TrackedFlow | undefined> {
  return (await listed(family)).find((flow) => flow.sourcePort === sourcePort);
}

describe.each(ipFamilies)('real UDP flows of %s', (family) => {
  test('are listed with who sent, where to, and who answers after translation', async () => {
    expect(await send(family, 5301, 40_001)).toBe('answered');
    const { from, to, behind } = places(family);
    expect(await flowFrom(family, 40_001)).toMatchObject({
      ipFamily: family,
      source: from,
      sourcePort: 40_001,
      destination: to,
      destinationPort: 5301,
      replySource: behind,
      replySourcePort: 8080,
      zone: 0,
    });
  });

  test('that were never translated are answered by their destination', async () => {
    const address = places(family).to;
    expect(await send(family, 5999, 40_003)).toBe('answered');
    expect(await flowFrom(family, 40_003)).toMatchObject({ destination: address, replySource: address });
  });

  test('of TCP and of the other family are not among them, filtered by the kernel or here', async () => {
    const address = places(family).to;
    await client.probe({ protocol: 'tcp', address, port: 5302, sourcePort: 40_004 });
    await send(family, 5302, 40_005);
    const unfiltered = createFlowTable({ clock: systemClock, netns, maxFiltered: 0 });
    const keysOf = (found: readonly TrackedFlow[]): readonly string[] =>
      found.map(({ id, source, sourcePort }) => `${id} ${source} ${sourcePort}`).sort();
    const [kernel, own] = [await listed(family), await listed(family, unfiltered)];
    expect(keysOf(own)).toEqual(keysOf(kernel));
    expect(own.every((flow) => flow.ipFamily === family)).toBe(true);
    expect(own.filter(({ sourcePort }) => sourcePort === 40_004)).toEqual([]);
    expect(own.filter(({ sourcePort }) => sourcePort === 40_005)).toHaveLength(1);
  });

  test('can be chosen by destination port', async () => {
    await send(family, 5303, 40_006);
    await send(family, 5304, 40_006);
    const ports = (await listed(family, flows, [5303])).map((flow) => flow.destinationPort);
    expect(new Set(ports)).toEqual(new Set([5303]));
  });

  test('are deleted one by one; a second deletion finds nothing, which is no failure', async () => {
    await send(family, 5305, 40_007);
    await send(family, 5305, 40_008);
    const [doomed, kept] = [await flowFrom(family, 40_007), await flowFrom(family, 40_008)];
    expect(flows.delete([doomed!])).toBe(1);
    expect(flows.delete([doomed!])).toBe(0);
    expect(await flowFrom(family, 40_007)).toBeUndefined();
    expect((await flowFrom(family, 40_008))?.id).toBe(kept?.id);
  });

  test('a new flow of the same client, to another endpoint, is not taken for the old one', async () => {
    await send(family, 5310, 40_009);
    const old = await flowFrom(family, 40_009);
    expect(old?.replySourcePort).toBe(8080);
    await forward(5310, 8081);
    expect(flows.delete([old!])).toBe(1);
    await send(family, 5310, 40_009);
    const young = await flowFrom(family, 40_009);
    expect(young).toMatchObject({ destinationPort: 5310, replySourcePort: 8081 });
    expect(flows.delete([old!])).toBe(0);
    expect((await flowFrom(family, 40_009))?.id).toBe(young?.id);
    await forward(5310, 8080);
  });

  test('of another conntrack zone are deleted too', async () => {
    await send(family, 5309, 40_010, 200);
    const zoned = await flowFrom(family, 40_010);
    expect(zoned).toMatchObject({ zone: 7, destinationPort: 5309 });
    expect(flows.delete([zoned!])).toBe(1);
    expect(await flowFrom(family, 40_010)).toBeUndefined();
  });
});

describe('many flows', () => {
  const count = 40_000;

  test.each([
    ['UDP flows, filtered by the kernel', 'udp', { maxFiltered: Infinity }],
    ['UDP flows, filtered here', 'udp', { maxFiltered: 0 }],
    ['TCP flows, filtered here', 'tcp', { maxFiltered: 0 }],
  ] as const)('%s: the event loop runs while they are listed', async (_, protocol, limits) => {
    await node.run('ip', ['netns', 'add', `${node.namespace}-many`]);
    try {
      const many = `/run/netns/${node.namespace}-many`;
      insertFlows({ netns: many, protocol, count, destinationPort: 53 });
      const table = createFlowTable({ clock: systemClock, netns: many, ...limits });
      let turns = 0;
      const timer = setInterval(() => turns++, 1);
      const found = await listed('IPv4', table);
      clearInterval(timer);
      expect(found).toHaveLength(protocol === 'udp' ? count : 0);
      expect(new Set(found.map(({ source, sourcePort }) => `${source} ${sourcePort}`)).size).toBe(found.length);
      expect(turns).toBeGreaterThan(5);
      expect(table.delete(found)).toBe(found.length);
    } finally {
      await node.run('ip', ['netns', 'delete', `${node.namespace}-many`]);
    }
  });
});

test('the proc file shows the same', async () => {
  await send('IPv4', 5306, 40_020);
  const { stdout } = await node.run('cat', ['/proc/net/nf_conntrack']);
  const told = stdout.split('\n').filter((line) => / udp .*dport=5306 .*src=/.test(line));
  const { source, destination, replySource } = (await flowFrom('IPv4', 40_020))!;
  expect(told).toHaveLength(1);
  expect(told[0]).toContain(`src=${source} dst=${destination} sport=40020 dport=5306`);
  expect(told[0]).toContain(`src=${replySource} dst=${source} sport=8080 dport=40020`);
});
