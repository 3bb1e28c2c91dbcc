import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ForwardingTable, type IpFamily, ipFamilies, parseIp } from '@switchyard/core';
import { service, slice, tableOf, tableOptions } from '@switchyard/core/testing';
import { clusterCidrs, createLab, createProber, type Lab, type Prober, startEchoServer } from '@switchyard/lab';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { affinityMapSize } from '../../src/render/names.ts';
import { Kernel, signal, withoutProtocolMatch } from './support.ts';

const firstPort = 9000;
const portCount = 300;
const clientCount = 30;

interface Plan {
  readonly cluster: string;
  readonly outer: string;
  readonly client: (number: number) => string;
}

const plans: Readonly<Record<IpFamily, Plan>> = {
  IPv4: { cluster: '10.96.0.9', outer: '198.51.100.9', client: (number) => `172.18.0.${150 + number}` },
  IPv6: { cluster: 'fd00:10:96::9', outer: '2001:db8:51::9', client: (number) => `fd00:172:18::${7000 + number}` },
};

let lab: Lab;
let client: Prober;
let node: Lab['nodes'][number];
let pod: Awaited<ReturnType<Lab['addPod']>>;

beforeAll(async () => {
  lab = await createLab({ name: 'nfta', nodes: 1, ipFamilies }, signal);
  node = lab.nodes[0]!;
  pod = await lab.addPod(node, 'many');
  startEchoServer(pod, { pod: 'many', tcp: Array.from({ length: portCount }, (_, index) => firstPort + index) });
  client = await createProber(lab.client, signal);
  const device = (await lab.client.run('ip', ['-o', '-4', 'route', 'show', '172.18.0.0/24'])).stdout.split(' dev ')[1];
  for (const family of ipFamilies) {
    const { cluster, outer, client: address } = plans[family];
    await lab.routeToNode([cluster, outer].map(parseIp), node);
    const lines = Array.from(
      { length: clientCount },
      (_, number) =>
        `addr add ${address(number)}/${family === 'IPv4' ? '24' : '64 nodad'} dev ${device?.split(' ')[0]}\n`,
    );
    const added = await lab.client.run('ip', ['-batch', '-'], { stdin: lines.join('') });
    expect(added.exitCode, added.stderr).toBe(0);
    await pod.run('ip', ['link', 'set', 'lo', 'up']);
  }
  let isThere = false;
  for (let round = 0; round < 50 && !isThere; round++) {
    const answer = await probeFrom(lab.nodes[0]!, pod.addresses.IPv4!);
    isThere = answer;
  }
  expect(isThere).toBe(true);
});

afterAll(() => lab[Symbol.asyncDispose]());

async function probeFrom(host: Lab['nodes'][number], address: string): Promise<boolean> {
  await using prober = await createProber(host, signal);
  const { status } = await prober.probe({ protocol: 'tcp', address, port: firstPort + portCount - 1, timeout: 300 });
  return status === 'answered';
}

interface Shop {
  /** Ports of the pod: each one is an endpoint. */
  readonly endpoints: readonly number[];
  /** Undefined: none. */
  readonly affinitySeconds?: number;
}

/** Endpoints on one pod that differ by port: each in a slice of its own. */
function table(family: IpFamily, { endpoints, affinitySeconds }: Shop): ForwardingTable {
  const { cluster, outer } = plans[family];
  const spec = {
    clusterIps: [cluster],
    loadBalancerIps: [outer],
    ports: [{ port: 80, nodePort: 30080 }],
    ...(affinitySeconds === undefined ? {} : { affinitySeconds }),
  };
  return tableOf(
    {
      services: [service('shop/cart', spec)],
      slices: endpoints.map((index) =>
        slice('shop/cart', {
          name: `cart-${index}`,
          ipFamily: family,
          ports: [{ port: firstPort + index }],
          endpoints: [{ ip: pod.addresses[family]!, node: 'n1' }],
        }),
      ),
      nodes: [],
      serviceCidrs: [],
    },
    tableOptions({ ipFamily: family, podCidr: clusterCidrs[family] }),
  );
}

type Frontend = 'cluster' | 'outer' | 'nodePort';

/** The endpoint that answered, by its index; what went wrong otherwise. */
async function connect(family: IpFamily, number: number, to: Frontend = 'cluster'): Promise<number | string> {
  const plan = plans[family];
  const [address, port] = to === 'nodePort' ? [node.addresses[family]!, 30080] : [plan[to], 80];
  const result = await client.probe({ protocol: 'tcp', address, port, source: plan.client(number) });
  if (result.status !== 'answered') return result.status;
  const { destinationPort } = JSON.parse(result.body) as { readonly destinationPort: number };
  return destinationPort - firstPort;
}

const everyClient = (family: IpFamily, to?: Frontend): Promise<(number | string)[]> =>
  Promise.all(Array.from({ length: clientCount }, (_, number) => connect(family, number, to)));

const nft = async (...args: readonly string[]): Promise<string> => {
  const result = await node.run('nft', args);
  expect(result.exitCode, result.stderr).toBe(0);
  return result.stdout;
};

async function pinCount(family: IpFamily): Promise<number> {
  const listed = await nft('list', 'map', 'inet', 'switchyard', family === 'IPv4' ? 'affinity4' : 'affinity6');
  return listed.split(' expires ').length - 1;
}

const pause = (milliseconds: number): Promise<unknown> => once(AbortSignal.timeout(milliseconds), 'abort');

describe.each(ipFamilies)('%s', (family) => {
  let kernel: Kernel;

  beforeEach(async () => {
    kernel = await Kernel.open(node, family);
    await kernel.backend.cleanup(signal);
  });

  test('fact 60: a client keeps its endpoint over all frontends and source ports; clients are spread', async () => {
    await kernel.full(table(family, { endpoints: [1, 2, 3], affinitySeconds: 100 }));
    const first = await everyClient(family);
    expect([...new Set(first)].sort()).toEqual([1, 2, 3]);
    for (const to of ['cluster', 'nodePort', 'outer', 'nodePort', 'cluster'] as const) {
      expect(await everyClient(family, to)).toEqual(first);
    }
    expect(await pinCount(family)).toBe(clientCount);
  });

  test('clients of a removed endpoint move, once; all others stay, then and when one is added', async () => {
    await kernel.full(table(family, { endpoints: [1, 2, 3], affinitySeconds: 100 }));
    const before = await everyClient(family);
    expect(await kernel.next(table(family, { endpoints: [1, 3], affinitySeconds: 100 }))).toMatchObject({
      status: 'applied',
    });
    const after = await everyClient(family);
    expect(after.map((endpoint, number) => endpoint !== before[number])).toEqual(before.map((one) => one === 2));
    expect(after).not.toContain(2);
    for (let round = 0; round < 3; round++) expect(await everyClient(family)).toEqual(after);
    await kernel.next(table(family, { endpoints: [1, 2, 3, 4], affinitySeconds: 100 }));
    for (let round = 0; round < 3; round++) expect(await everyClient(family)).toEqual(after);
  });

  test('a process with no memory adopts it without a write, and all clients stay', async () => {
    await kernel.full(table(family, { endpoints: [1, 2, 3], affinitySeconds: 100 }));
    await kernel.next(table(family, { endpoints: [2, 3, 4], affinitySeconds: 100 }));
    const before = await everyClient(family);
    const restarted = await Kernel.open(node, family);
    const result = await restarted.full(table(family, { endpoints: [2, 3, 4], affinitySeconds: 100 }));
    expect(result).toEqual({ status: 'applied', writes: 0 });
    expect(await everyClient(family)).toEqual(before);
    await restarted.next(table(family, { endpoints: [2, 3, 4, 5], affinitySeconds: 100 }));
    expect(await everyClient(family)).toEqual(before);
    expect(await restarted.backend.dump(signal)).toContain('each client keeps its own for 100 s');
  });

  test('after the timeout a client is free; each connection begins it anew', async () => {
    await kernel.full(table(family, { endpoints: [1, 2, 3], affinitySeconds: 2 }));
    await everyClient(family);
    expect(await pinCount(family)).toBe(clientCount);
    for (let round = 0; round < 4; round++) {
      await pause(900);
      await connect(family, 0);
    }
    expect(await pinCount(family)).toBe(1);
    for (let round = 0; round < 50 && (await pinCount(family)) > 0; round++) await pause(100);
    expect(await pinCount(family)).toBe(0);
  });

  test('switched on, off and to another timeout on a live Service: no connect fails', async () => {
    const plain = table(family, { endpoints: [1, 2, 3] });
    const kept = table(family, { endpoints: [1, 2, 3], affinitySeconds: 100 });
    const longer = table(family, { endpoints: [1, 2, 3], affinitySeconds: 200 });
    await kernel.full(plain);
    const results: (number | string)[] = [];
    const done = new AbortController();
    const connecting = Promise.all(
      Array.from({ length: 4 }, async (_, number) => {
        while (!done.signal.aborted) results.push(await connect(family, number));
      }),
    );
    for (let round = 0; round < 40 || results.length <= 200; round++) {
      for (const one of [kept, longer, plain]) {
        expect(await kernel.next(one)).toMatchObject({ status: 'applied' });
        await pause(5);
      }
    }
    done.abort();
    await connecting;
    expect(results.filter((result) => typeof result === 'string')).toEqual([]);
  });

  test('nft prints the rules', async () => {
    await kernel.full(table(family, { endpoints: [1, 2, 3], affinitySeconds: 100 }));
    const suffix = family === 'IPv4' ? '4' : '6';
    const listed = await nft('list', 'ruleset');
    const chain = new RegExp(`chain aff${suffix}-3-100 \\{\\n([^}]*)\\n\\t\\}`).exec(
      listed.replaceAll(/\{ (ip6? saddr .*?) \}/g, '<$1>'),
    );
    expect(chain?.[1]?.replaceAll('\t', '').split('\n')).toEqual(listing(suffix));
    expect(JSON.parse(await nft('-j', 'list', 'ruleset'))).toHaveProperty('nftables');
  });

  test('a class made at run time for 300 endpoints uses all of them', async () => {
    const endpoints = Array.from({ length: portCount }, (_, index) => index);
    await kernel.full(table(family, { endpoints }));
    expect(await nft('list', 'ruleset')).toContain(`chain lb${family === 'IPv4' ? '4' : '6'}-300 {`);
    const hits = new Map<number | string, number>();
    for (let round = 0; round < 70; round++) {
      for (const result of await everyClient(family)) hits.set(result, (hits.get(result) ?? 0) + 1);
    }
    expect([...hits.keys()].filter((key) => typeof key === 'string')).toEqual([]);
    expect(hits.size).toBeGreaterThan(290); // 2,100 connections: 0.3 of 300 endpoints are left out on average
    expect(Math.max(...hits.values())).toBeLessThan(28); // mean 7
  });

  test('a class made at run time has the rules of a preloaded one, but for the match that only nft wants', async () => {
    await kernel.full(table(family, { endpoints: Array.from({ length: 65 }, (_, index) => index) }));
    const suffix = family === 'IPv4' ? '4' : '6';
    const rules = async (slots: number): Promise<string> =>
      (await nft('list', 'chain', 'inet', 'switchyard', `lb${suffix}-${slots}`)).replaceAll(
        new RegExp(`\\b${slots}\\b`, 'g'),
        'N',
      );
    expect(await rules(65)).toBe(withoutProtocolMatch(await rules(64)));
  });

  test('when no more clients can be kept, the others are balanced', async () => {
    await kernel.full(table(family, { endpoints: [1, 2, 3], affinitySeconds: 100 }));
    const name = family === 'IPv4' ? 'affinity4' : 'affinity6';
    const address = (index: number): string =>
      family === 'IPv4'
        ? `11.${index >> 16}.${(index >> 8) & 255}.${index & 255}`
        : `fd11::${(index >> 16).toString(16)}:${(index & 0xffff).toString(16)}`;
    const file = join(lab.folder, 'full.nft');
    const elements = Array.from(
      { length: affinityMapSize },
      (_, index) => `${address(index)} . 0x1 timeout 100s : 0x1`,
    );
    await writeFile(file, `add element inet switchyard ${name} { ${elements.join(', ')} }\n`);
    await nft('-f', file);
    const [first, second] = [await everyClient(family), await everyClient(family)];
    expect([...new Set([...first, ...second])].sort()).toEqual([1, 2, 3]);
    expect(second).not.toEqual(first); // no client kept its endpoint
    await nft('flush', 'map', 'inet', 'switchyard', name);
    const kept = await everyClient(family);
    expect(await everyClient(family)).toEqual(kept);
  });
});

/** The rules of a class as nft prints them; elements in rules stand between angle brackets. */
function listing(suffix: '4' | '6'): readonly string[] {
  const ip = suffix === '4' ? 'ip' : 'ip6';
  const set = 'meta priority set meta priority & f:ffff';
  const key = `${ip} saddr . meta priority`;
  const update = `update @affinity${suffix} <${key} timeout 1m40s : meta priority>`;
  const pin = `meta priority set ${key} map @affinity${suffix}`;
  const pick = (slots: number): string =>
    `meta priority set meta priority . numgen random mod ${slots} map @aff-slots${suffix}`;
  const dnat = `dnat ${ip} to meta priority map @aff-endpoints${suffix}`;
  const family = suffix === '4' ? 'meta nfproto ipv4' : 'meta nfproto ipv6';
  return [
    `${set} ${pin} ${update} ${dnat}`,
    `${set} delete @affinity${suffix} <${key} : meta priority>`,
    ...[3, 1].map((slots) => `${set} ${family} ${pick(slots)} ${update} ${pin} ${dnat}`),
    ...[3, 1].map((slots) => `${set} ${family} ${pick(slots)} ${dnat}`),
    'drop',
  ];
}
