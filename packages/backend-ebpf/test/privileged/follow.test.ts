import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ipFamilies, type IpFamily, parseCidr, parseIp, systemClock } from '@switchyard/core';
import { MemoryLogger } from '@switchyard/core/testing';
import type { BpfMap, NetworkNamespace } from '@switchyard/native';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { MapSet } from '../../src/kernel/kernel.ts';
import { NodeAddresses } from '../../src/kernel/node-addresses/node-addresses.ts';
import { addressBytes } from '../../src/render/settings/address-bytes.ts';
import { StaleSockets } from '../../src/kernel/stale-sockets/stale-sockets.ts';
import { SocketSite } from './socket-site.ts';
import { endpointOf, ports, vips, writeWorld } from './socket-world.ts';

const { signal } = new AbortController();
let site: SocketSite;

beforeAll(async () => {
  site = await SocketSite.create('ebfollow', signal);
  for (const family of ipFamilies) writeWorld(site, family);
});
afterAll(() => site?.[Symbol.asyncDispose]());

/** As what is left of a namespace's name when its mount is gone. */
const fileWithoutMount = fileURLToPath(import.meta.url);

/** Never the machine's own namespace. */
function labNamespaces(): readonly NetworkNamespace[] {
  const names = [site.node.namespace, ...site.podNamespaces];
  const paths = ['/run/netns/that-is-gone', fileWithoutMount, ...names.map((name) => `/run/netns/${name}`)];
  return paths.map((path, inode) => ({ inode, path }));
}

function mapsOf(family: IpFamily): MapSet {
  return Object.fromEntries(site.instances[family].object.maps) as MapSet; // the object has them all
}

describe.each(ipFamilies)('connected UDP sockets, %s', (family) => {
  const vip = vips[family];
  const gone = [{ id: endpointOf(ports.changing, 'a'), generation: 1 }];

  function sockets(): StaleSockets {
    const maps = mapsOf(family);
    const options = { ipFamily: family, maps: () => maps, clock: systemClock, logger: new MemoryLogger() };
    return new StaleSockets({ ...options, namespaces: labNamespaces });
  }

  /** A socket of a driver that got an answer. */
  async function connected(
    where: 'pod' | 'node',
    to: readonly [address: string, port: number],
    socket = family === 'IPv4' ? 4 : 6,
  ) {
    const driver = site.drivers[where];
    const id = `u${family}${where}${to.join('_')}${socket}`;
    const [address, port] = to;
    const text = socket === 6 && family === 'IPv4' ? `::ffff:${address}` : address;
    const answers = await driver.all(
      `open ${id} udp ${socket}`,
      `connect ${id} ${text} ${port}`,
      `send ${id} who`,
      `recv ${id}`,
    );
    expect(answers.slice(0, 3)).toEqual(['ok', 'ok', 'ok']);
    return async (): Promise<string> => {
      const [sent, received] = await driver.all(`send ${id} who`, `recv ${id}`);
      return sent === 'ok' ? ((received ?? '').split(' ')[0] ?? '') : (sent ?? '');
    };
  }

  test('those connected to a deleted endpoint by a service are destroyed, in every namespace, and no others', async () => {
    const led = await connected('pod', [vip, ports.changing]);
    const fromNode = await connected('node', [vip, ports.changing]);
    const wide = family === 'IPv4' ? await connected('pod', [vip, ports.changing], 6) : undefined;
    const direct = await connected('pod', [site.address('a', family), 8080]);
    const elsewhere = await connected('pod', [vip, ports.unswapped]);
    const none = await sockets().sweep([{ ...gone[0]!, generation: 2 }], signal);
    expect(none).toEqual({ destroyed: 0, visited: 0 });
    expect(await led()).toBe('a');
    const { destroyed } = await sockets().sweep(gone, signal);
    expect(destroyed).toBe(wide === undefined ? 2 : 3);
    for (const one of [led, fromNode, wide]) if (one !== undefined) expect(await one()).toBe('EDESTADDRREQ');
    expect([await direct(), await elsewhere()]).toEqual(['a', 'b']);
    expect((await sockets().sweep(gone, signal)).destroyed).toBe(0);
  });

  test('one that connected while its endpoint went is found by the second look', async () => {
    const stop = new AbortController();
    const watch = sockets();
    const running = watch.run(stop.signal);
    watch.note(gone);
    await setTimeout(300);
    const late = await connected('pod', [vip, ports.changing]);
    await setTimeout(1200);
    expect(await late()).toBe('EDESTADDRREQ');
    stop.abort();
    await running;
  });

  test('a deletion in the second after another one does not wait for the second look', async () => {
    const stop = new AbortController();
    const watch = sockets();
    const running = watch.run(stop.signal);
    watch.note([{ ...gone[0]!, generation: 2 }]);
    const led = await connected('pod', [vip, ports.changing]);
    await setTimeout(200);
    watch.note(gone);
    await setTimeout(400);
    expect(await led()).toBe('EDESTADDRREQ');
    stop.abort();
    await running;
  });
});

describe('addresses of the node', () => {
  test('come and go in the map as in the kernel, also that of an interface without a carrier, but not of one that is down', async () => {
    const maps = mapsOf('IPv4');
    const addresses = new NodeAddresses({
      ipFamily: 'IPv4',
      maps: () => maps,
      clock: systemClock,
      netns: `/run/netns/${site.node.namespace}`,
    });
    const stop = new AbortController();
    addresses.apply({ nodePortCidrs: [parseCidr('192.0.2.0/24')] });
    const following = addresses.follow(stop.signal);
    await setTimeout(100);
    const ip = async (...args: readonly string[]): Promise<void> => {
      expect(await site.node.run('ip', args)).toMatchObject({ exitCode: 0 });
    };
    await ip('link', 'add', 'swy0', 'type', 'bridge');
    await ip('address', 'add', '192.0.2.7/24', 'dev', 'swy0');
    await setTimeout(150);
    expect(flagsOf(maps.node_addresses, '192.0.2.7')).toBeUndefined();
    await ip('link', 'set', 'swy0', 'up');
    expect(await within(() => flagsOf(maps.node_addresses, '192.0.2.7') === 1)).toBeLessThan(300);
    expect(flagsOf(maps.node_addresses, site.node.addresses.IPv4 ?? '')).toBe(0);
    await ip('address', 'delete', '192.0.2.7/24', 'dev', 'swy0');
    expect(await within(() => flagsOf(maps.node_addresses, '192.0.2.7') === undefined)).toBeLessThan(300);
    stop.abort();
    await following;
    expect(addresses.findDamage()).toEqual([]);
  });
});

function flagsOf(map: BpfMap, ip: string): number | undefined {
  return map.lookup(addressBytes(parseIp(ip)))?.[0];
}

/** Milliseconds until it is so; at most a second and a bit. */
async function within(isSo: () => boolean): Promise<number> {
  const start = systemClock.monotonic();
  while (!isSo() && systemClock.monotonic() - start < 1200) await setTimeout(2);
  return systemClock.monotonic() - start;
}
