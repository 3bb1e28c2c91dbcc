import { type ForwardingTable, type IpFamily, ipFamilies, parseIp } from '@switchyard/core';
import { here, situation, type SituationSpec, there } from '@switchyard/core/testing';
import { connectWhile, type ProbeRequest, type Traffic } from '@switchyard/lab';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSite, Kernel, signal, type Site } from './support.ts';

const vip: Readonly<Record<IpFamily, string>> = { IPv4: '198.51.100.1', IPv6: '2001:db8:100::1' };
const clusterIp: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.10', IPv6: 'fd00:10:96::10' };
const other: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.11', IPv6: 'fd00:10:96::11' };

let site: Site;

beforeAll(async () => {
  site = await createSite('noloss');
  await site.lab.routeToNode(Object.values(vip).map(parseIp), site.node);
});

afterAll(() => site[Symbol.asyncDispose]());

type Pod = 'near' | 'far';

/** A Service on TCP and UDP with a load-balancer IP, behind these pods; and one without endpoints. */
function table(ipFamily: IpFamily, ...pods: readonly Pod[]): ForwardingTable {
  return shop(ipFamily, pods);
}

function shop(ipFamily: IpFamily, pods: readonly Pod[], changed: SituationSpec = {}): ForwardingTable {
  const ip = { near: site.near.addresses[ipFamily]!, far: site.far.addresses[ipFamily]! };
  return situation(
    {
      shop: {
        clusterIps: [clusterIp[ipFamily]],
        loadBalancerIps: [vip[ipFamily]],
        ports: [
          { name: 'tcp', port: 80 },
          { name: 'udp', port: 80, protocol: 'UDP' },
        ],
        endpoints: pods.map((pod) => (pod === 'near' ? here(ip.near) : there(ip.far))),
        ...changed,
      },
      other: { clusterIps: [other[ipFamily]] },
    },
    { ipFamily },
  );
}

const kinds: readonly ProbeRequest[] = ipFamilies.flatMap((family) =>
  (['tcp', 'udp'] as const).map((protocol) => ({ protocol, address: vip[family], port: 80 })),
);

/** New connections from the client while `work` goes on: TCP and UDP of both families, `lines` of each at a time. */
function during(lines: number, work: (count: () => number) => Promise<void>): Promise<Traffic> {
  return connectWhile({ prober: site.client, requests: kinds, lines }, work);
}

type Both<T> = Readonly<Record<IpFamily, T>>;

async function openBoth(): Promise<Both<Kernel>> {
  return { IPv4: await Kernel.open(site.node, 'IPv4'), IPv6: await Kernel.open(site.node, 'IPv6') };
}

/** Brings both families to a state of `pods`; a process with no memory begins with a full apply. */
async function applyBoth(kernels: Both<Kernel>, how: 'full' | 'next', ...pods: readonly Pod[]): Promise<number> {
  const outcomes = await Promise.all(ipFamilies.map((family) => kernels[family][how](table(family, ...pods))));
  let writes = 0;
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ status: 'applied' });
    writes += outcome.status === 'applied' ? outcome.writes : 0;
  }
  return writes;
}

async function closeBoth(kernels: Both<Kernel>): Promise<void> {
  for (const family of ipFamilies) await kernels[family].backend[Symbol.asyncDispose]();
}

const states: readonly (readonly Pod[])[] = [['near'], ['near', 'far'], ['far'], ['near', 'far']];

/** Writes over netlink never wait, so without this no answer to a connection would ever be read. */
async function breathe(): Promise<void> {
  await setTimeout(1);
}

async function nft(...args: readonly string[]): Promise<string> {
  const result = await site.node.run('nft', args);
  expect(result.exitCode, result.stderr).toBe(0);
  return result.stdout;
}

describe('no connection is lost, TCP or UDP, IPv4 or IPv6', () => {
  test('when processes with no memory adopt what is there, one after another: and none of them writes', async () => {
    const first = await openBoth();
    await applyBoth(first, 'full', 'near', 'far');
    const traffic = await during(2, async (count) => {
      for (let round = 0; round < 10 || count() < 1000; round++) {
        const kernels = await openBoth();
        expect(await applyBoth(kernels, 'full', 'near', 'far')).toBe(0);
        await closeBoth(kernels);
        await breathe();
      }
    });
    expect(traffic.failed).toEqual([]);
    await closeBoth(first);
  });

  test('when endpoints come and go while a new build replaces the rules, again and again', async () => {
    let kernels = await openBoth();
    await applyBoth(kernels, 'full', 'near', 'far');
    let tables = '';
    const traffic = await during(2, async (count) => {
      for (let round = 0; round < 5 || count() < 1000; round++) {
        for (const pods of states) await applyBoth(kernels, 'next', ...pods);
        await closeBoth(kernels);
        // The table is as if another build had made it.
        const current = (await nft('list', 'tables')).match(/switchyard(-2)?/)?.[0] ?? '';
        await nft(`flush set inet ${current} birthmark ; add element inet ${current} birthmark { ${round} }`);
        kernels = await openBoth();
        await applyBoth(kernels, 'full', 'near', 'far');
        for (const pods of states) await applyBoth(kernels, 'next', ...pods);
        tables = await nft('list', 'tables');
        expect(tables).not.toContain(`inet ${current}\n`);
      }
    });
    expect(traffic.failed).toEqual([]);
    await closeBoth(kernels);
  });
});

describe('over netlink', () => {
  test('damaged rules are replaced without a lost connection', async () => {
    const kernels = await openBoth();
    await applyBoth(kernels, 'full', 'near', 'far');
    const traffic = await during(2, async (count) => {
      for (let round = 0; round < 5 || count() < 1000; round++) {
        const current = (await nft('list', 'tables')).match(/switchyard(-2)?/)?.[0] ?? '';
        await nft(`delete element inet ${current} lb4-classes { 0x00500000 }`); // a class without users
        await applyBoth(kernels, 'full', 'near', 'far');
      }
    });
    expect(traffic.failed).toEqual([]);
    await closeBoth(kernels);
  });

  test('20,000 commits back to back miss no new connection', async () => {
    const kernels = await openBoth();
    await applyBoth(kernels, 'full', 'near', 'far');
    const commits = 20_000;
    const traffic = await during(8, async (count) => {
      for (let commit = 0; commit < commits || count() < 2000; commit += 2) {
        await applyBoth(kernels, 'next', ...states[(commit / 2) % states.length]!);
        if (commit % 20 === 0) await breathe();
      }
    });
    expect(traffic.failed).toEqual([]);
    for (const family of ipFamilies) await kernels[family].backend.cleanup(signal);
    await closeBoth(kernels);
  });

  test('policies, affinity and source ranges change back and forth, 4,000 times', async () => {
    const ipFamily = 'IPv4';
    const states: readonly SituationSpec[] = [
      {},
      { internal: 'Local', external: 'Local' },
      {},
      { affinitySeconds: 60 },
      {},
      { sourceRanges: ['0.0.0.0/0'] },
    ];
    const kernel = await Kernel.open(site.node, ipFamily);
    await kernel.full(shop(ipFamily, ['near', 'far']));
    // Shorter than the second after which a client sends its SYN again.
    const requests = [clusterIp, vip].flatMap((to) =>
      (['tcp', 'udp'] as const).map((protocol) => ({ protocol, address: to[ipFamily], port: 80, timeout: 900 })),
    );
    const traffic = await connectWhile({ prober: site.self, requests, lines: 4 }, async (count) => {
      for (let commit = 1; commit <= 4000 || count() < 2000; commit++) {
        const outcome = await kernel.next(shop(ipFamily, ['near', 'far'], states[commit % states.length]));
        expect(outcome).toMatchObject({ status: 'applied' });
        await breathe();
      }
    });
    expect(traffic.failed).toEqual([]);
    await kernel.backend.cleanup(signal);
    await kernel.backend[Symbol.asyncDispose]();
  });
});
