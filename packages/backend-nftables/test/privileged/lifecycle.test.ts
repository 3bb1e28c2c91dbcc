import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ForwardingTable, ipFamilies, noopLogger, parseIp } from '@switchyard/core';
import { here, situation, there } from '@switchyard/core/testing';
import type { ProbeResult } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nftablesBackend } from '../../src/index.ts';
import { FakeNft } from '../../src/testing/fake-nft.ts';
import { createSite, Kernel, signal, type Site } from './support.ts';

const vip = '198.51.100.1';
const clusterIp = '10.96.0.10';

let site: Site;

beforeAll(async () => {
  site = await createSite('nftl');
  await site.lab.routeToNode([vip, clusterIp].map(parseIp), site.node);
});

afterAll(() => site[Symbol.asyncDispose]());

function table(...endpoints: readonly ('near' | 'far')[]): ForwardingTable {
  const { near, far } = site;
  const spec = { near: here(near.addresses.IPv4!), far: there(far.addresses.IPv4!) };
  return situation({
    shop: { loadBalancerIps: [vip], ports: [{ port: 80 }], endpoints: endpoints.map((name) => spec[name]) },
    other: { clusterIps: ['10.96.0.11'] },
  });
}

interface Traffic {
  readonly count: number;
  readonly failed: readonly ProbeResult[];
}

/** Resolves when so many more connects have been made, however slow the machine is. */
type AwaitConnects = (more: number) => Promise<void>;

/** Connects from the client, four at a time, until `work` is done. */
async function during(work: (connects: AwaitConnects) => Promise<void>): Promise<Traffic> {
  const failed: ProbeResult[] = [];
  let count = 0;
  const done = new AbortController();
  const connect = async (): Promise<void> => {
    while (!done.signal.aborted) {
      const result = await site.client.probe({ protocol: 'tcp', address: vip, port: 80 });
      count++;
      if (result.status !== 'answered') failed.push(result);
    }
  };
  const connecting = Promise.all(Array.from({ length: 4 }, connect));
  const connects: AwaitConnects = async (more) => {
    const enough = count + more;
    const isEnough = (): boolean => count >= enough;
    const end = performance.now() + 20_000;
    while (!isEnough()) {
      if (performance.now() > end) throw new Error(`no ${more} connects within 20 s`);
      await pause(2);
    }
  };
  await work(connects).finally(() => done.abort());
  await connecting;
  return { count, failed };
}

const pause = (milliseconds: number): Promise<unknown> => once(AbortSignal.timeout(milliseconds), 'abort');

const nft = async (...args: readonly string[]): Promise<string> => {
  const result = await site.node.run('nft', args);
  expect(result.exitCode, result.stderr).toBe(0);
  return result.stdout;
};

describe('under connects', () => {
  test('a process with no memory adopts what is there: no write, no failed connect', async () => {
    await (await Kernel.open(site.node)).full(table('near', 'far'));
    const { count, failed } = await during(async (connects) => {
      for (let round = 0; round < 5; round++) {
        expect(await (await Kernel.open(site.node)).full(table('near', 'far'))).toEqual({
          status: 'applied',
          writes: 0,
        });
        await connects(21);
      }
    });
    expect(failed).toEqual([]);
    expect(count).toBeGreaterThan(100);
  });

  test('endpoints that come and go in 150 commits miss no connect', async () => {
    const kernel = await Kernel.open(site.node);
    await kernel.full(table('near', 'far'));
    const states = [table('near'), table('near', 'far'), table('far'), table('near', 'far')];
    const { count, failed } = await during(async (connects) => {
      for (let round = 0; round < 150; round++) {
        expect(await kernel.next(states[round % states.length]!)).toMatchObject({ status: 'applied' });
        await connects(4); // as many as are under way at a time
      }
    });
    expect(failed).toEqual([]);
    expect(count).toBeGreaterThan(500);
  });

  test('the table of another build is replaced, without a failed connect and without the other family noticing', async () => {
    await (await Kernel.open(site.node)).full(table('near', 'far'));
    await (
      await Kernel.open(site.node, 'IPv6')
    ).full(
      situation(
        { six: { clusterIps: ['fd00:10:96::1'], endpoints: [here('fd00:10:244:1::5')] } },
        { ipFamily: 'IPv6' },
      ),
    );
    await nft('flush set inet switchyard birthmark ; add element inet switchyard birthmark { 0x1 }');
    const { failed } = await during(async (connects) => {
      await connects(20);
      expect(await (await Kernel.open(site.node)).full(table('near', 'far'))).toMatchObject({ status: 'applied' });
      await connects(20);
    });
    expect(failed).toEqual([]);
    expect(await nft('list tables')).toBe('table inet switchyard\ntable inet switchyard-2\n');
    expect(await nft('list map inet switchyard frontends4')).not.toContain(vip);
    expect(await nft('list map inet switchyard frontends6')).toContain('fd00:10:96::1');
    for (const family of ipFamilies) await (await Kernel.open(site.node, family)).backend.cleanup(signal);
    expect(await nft('list tables')).toBe('');
  });

  test('nft killed in the middle of a large transaction leaves all or nothing, and the next process goes on', async () => {
    await (await Kernel.open(site.node)).full(table('near', 'far'));
    const many = Array.from({ length: 20_000 }, (_, index) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
    const file = join(site.lab.folder, 'large.nft');
    await writeFile(file, `add element inet switchyard cluster-ips4 { ${many.join(', ')} }\n`);
    const sizes = new Set<number>();
    const { failed } = await during(async () => {
      // The last one ends by itself, since a busy machine kills all others too early.
      for (const delay of [2, 5, 10, 15, 20, 30, 50, 80, 120, 200, 'none'] as const) {
        const child = site.node.spawn('nft', ['-f', file]);
        if (delay !== 'none') {
          await pause(delay);
          child.child.kill('SIGKILL');
        }
        await child.ended;
        sizes.add((await nft('list set inet switchyard cluster-ips4')).match(/\d+\.\d+\.\d+\.\d+/g)?.length ?? 0);
        expect(await (await Kernel.open(site.node)).full(table('near', 'far'))).toMatchObject({ status: 'applied' });
      }
    });
    expect(failed).toEqual([]);
    expect(sizes.isSubsetOf(new Set([2, 20_002]))).toBe(true);
    expect(sizes.size).toBe(2);
  });
});

test('the fake and the kernel dump the same, from the same writes', async () => {
  const kernel = await Kernel.open(site.node);
  const fake = await nftablesBackend.open(
    { openTransport: new FakeNft().openTransport, logger: noopLogger },
    'IPv4',
    AbortSignal.timeout(60_000),
  );
  const big = situation(
    {
      big: { endpoints: Array.from({ length: 300 }, (_, index) => there(`10.244.${index >> 8}.${index & 255}`)) },
      shop: {
        clusterIps: ['10.96.0.2'],
        external: 'Local',
        ports: [{ port: 80, nodePort: 30080 }],
        endpoints: [here('10.244.9.9')],
      },
    },
    { nodePortCidrs: ['10.0.0.0/9', '10.128.0.0/9', '192.0.2.1/32'], serviceCidrs: ['10.96.0.0/12', '10.96.0.0/16'] },
  );
  for (const one of [big, table('near'), big, situation({})]) {
    const request = { table: one, scope: { kind: 'full' } } as const;
    const outcome = await kernel.full(one);
    expect(outcome).toMatchObject({ status: 'applied' });
    expect(await kernel.backend.dump(signal)).toBe(await fake.apply(request, signal).then(() => fake.dump(signal)));
    expect(await kernel.full(one)).toEqual({ status: 'applied', writes: 0 });
  }
});

test('other users of nft on the node can list everything', async () => {
  await (await Kernel.open(site.node)).full(table('near'));
  expect(await nft('list', 'ruleset')).toContain('chain dispatch');
  expect(JSON.parse(await nft('-j', 'list', 'ruleset'))).toHaveProperty('nftables');
});
