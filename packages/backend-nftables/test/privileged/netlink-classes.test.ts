import { parseIp } from '@switchyard/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Change } from '../../src/render/elements.ts';
import { hex, packHandle } from '../../src/render/elements.ts';
import { createNetlinkTransport } from '../../src/kernel/netlink/netlink-transport.ts';
import { skeleton } from '../../src/render/skeleton.ts';
import type { NftTransport } from '../../src/kernel/transport.ts';
import { createSite, signal, type Site, withoutProtocolMatch } from './support.ts';

let site: Site;
let transport: NftTransport;

const families = [
  { suffix: '4', family: 'IPv4', vip: '198.51.100.9' },
  { suffix: '6', family: 'IPv6', vip: '2001:db8:51::9' },
] as const;

beforeAll(async () => {
  site = await createSite('nftp');
  await site.lab.routeToNode(
    families.map(({ vip }) => parseIp(vip)),
    site.node,
  );
  transport = createNetlinkTransport({ netns: `/run/netns/${site.node.namespace}` });
  await transport.loadRules('cannot load', skeleton('switchyard'), signal);
});

afterAll(async () => {
  await transport[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const write = (changes: readonly Change[]): Promise<void> =>
  transport.write('cannot try', { table: 'switchyard', changes }, signal);

/** Every source to the `Cluster` set, masqueraded. */
const everybody = 5;
const slots = 300;

describe.each(families)('a chain of 300 slots that was added at run time, $family', ({ suffix, family, vip }) => {
  const slot = (index: number): Change => ({
    kind: 'add',
    id: `endpoints${suffix} 0x2 . ${index}`,
    data: `${site.near.addresses[family]} . 8080`,
  });
  const connect = async (): Promise<readonly string[]> => {
    const attempts = Array.from({ length: 20 }, () => site.client.probe({ protocol: 'tcp', address: vip, port: 80 }));
    return [...new Set((await Promise.all(attempts)).map(({ status }) => status))];
  };

  test('takes slot 0 while the slot picked is not there', async () => {
    await write([
      { kind: 'class', suffix, handleClass: slots, chain: { kind: 'lb', slots } },
      slot(0),
      { kind: 'add', id: `to-cluster${suffix} 0x1`, data: hex(packHandle(slots, 2)) },
      { kind: 'add', id: `frontends${suffix} ${vip} . tcp . 80`, data: hex(packHandle(everybody, 1)) },
    ]);
    expect(await connect()).toEqual(['answered']);
  });

  test('takes the others when slot 0 is not there, and no connect goes elsewhere', async () => {
    await write(Array.from({ length: slots - 1 }, (_, index) => slot(index + 1)));
    expect(await connect()).toEqual(['answered']);
    // Now one connect in 300 would find nothing, which is the drop at the end of `lb4-1`.
    await write([{ kind: 'delete', id: `endpoints${suffix} 0x2 . 0` }, slot(slots + 5)]);
    expect(await connect()).toContain('answered');
  });

  test('looks like those of the rules, but for the match that only nft needs', async () => {
    const listed = async (count: number): Promise<string> =>
      (await site.node.run('nft', ['list', 'chain', 'inet', 'switchyard', `lb${suffix}-${count}`])).stdout;
    const preloaded = withoutProtocolMatch(await listed(64));
    expect(await listed(slots)).toBe(
      preloaded.replace(`lb${suffix}-64`, `lb${suffix}-300`).replace('mod 64', 'mod 300'),
    );
  });
});
