import { readdirSync, readlinkSync, renameSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, type IpFamily, ipFamilies, millis, noopLogger, systemClock } from '@switchyard/core';
import { connectWhile, sitePort } from '@switchyard/lab';
import { createMap, findClsact, listPins, loadBpfObject, NativeError, openPinnedLink } from '@switchyard/native';
import { queryTcx } from '@switchyard/native/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { copyMap, mapSetOf } from '../../src/kernel/programs/map-sets.ts';
import { objectFile } from '../../src/kernel/programs/object-files.ts';
import { mapShapes, smallestSizes } from '../../src/render/layouts.ts';
import { filterPriorities, UplinkPrograms } from '../../src/kernel/wire/uplink-programs.ts';
import { probeWire } from '../../src/kernel/wire/probe-wire.ts';
import type { WirePath } from '../../src/kernel/wire/wire-path.ts';
import { mapped } from './wire-maps.ts';
import { netnsOf, signal, WireSite } from './wire-site.ts';

const nodePort = 30_001;
/** Leads to the other node. */
const farPort = 30_002;
/** Keeps the client's address. */
const keptPort = 30_003;

let wire: WireSite;
let paths: Readonly<Record<IpFamily, WirePath>>;

beforeAll(async () => {
  wire = await WireSite.create('wirel');
  for (const family of ipFamilies) {
    const maps = wire.maps[family];
    maps.addNodeAddress(wire.node.addresses[family]!);
    maps.add({
      frontends: [['nodePort', nodePort]],
      protocol: 'tcp',
      actions: { pod: 'cluster', node: 'cluster', outside: 'cluster+' },
      endpoints: [[wire.site.near.addresses[family]!, sitePort, 'near']],
    });
    maps.add({
      frontends: [['nodePort', farPort]],
      protocol: 'tcp',
      actions: { pod: 'cluster', node: 'cluster', outside: 'cluster+' },
      endpoints: [[wire.site.far.addresses[family]!, sitePort, 'far']],
    });
    maps.add({
      frontends: [['nodePort', keptPort]],
      protocol: 'tcp',
      actions: { pod: 'cluster', node: 'cluster', outside: 'local' },
      endpoints: [[wire.site.near.addresses[family]!, sitePort, 'near']],
    });
  }
  paths = { IPv4: wire.open('IPv4'), IPv6: wire.open('IPv6') };
  for (const family of ipFamilies) await paths[family].ensure(signal);
});

afterAll(async () => {
  for (const family of ipFamilies) await paths[family][Symbol.asyncDispose]();
  await wire[Symbol.asyncDispose]();
});

const request = (family: IpFamily) =>
  ({ protocol: 'tcp', address: wire.node.addresses[family]!, port: nodePort, timeout: 400 }) as const;

async function isAnswered(family: IpFamily): Promise<boolean> {
  return (await wire.site.client.probe(request(family))).status === 'answered';
}

const programs = (device: string) => queryTcx({ ifindex: wire.indexOf(device), netns: netnsOf(wire.node) });

test('the machine can do it, and nothing of having tried is left', async () => {
  const before = await wire.nft('list', 'ruleset');
  expect(await probeWire({}, signal)).toEqual([]);
  expect(await wire.nft('list', 'ruleset')).toBe(before);
});

/** Devices of the node but loopback: the one that leads outside, and that of the pod. */
const devices = ['eth0', 'pod1'];
const pinsOf = (names: readonly string[]): readonly string[] =>
  names.map((name) => `lb_in-${wire.indexOf(name)}`).toSorted();

test('every device has the programs, one for each family, but loopback', () => {
  for (const family of ipFamilies) expect(paths[family].uplinks.map(({ name }) => name)).toEqual(devices);
  for (const name of devices) expect(programs(name).map((program) => program.name)).toEqual(['lb_in', 'lb_in']);
  expect(programs('lo')).toEqual([]);
});

test('another process finds all of it as it should be, and writes nothing', async () => {
  const before = programs('eth0');
  for (const family of ipFamilies) {
    await using other = wire.open(family);
    expect(await other.ensure(signal)).toBe(0);
    expect(await other.findFaults(signal)).toEqual([]);
    expect(await other.ensure(signal)).toBe(0);
  }
  expect(programs('eth0')).toEqual(before);
});

test('a link that does not take a program keeps its own, and does not stay open', () => {
  const before = programs('eth0');
  const maps = new Map(Object.entries(wire.maps.IPv4.maps));
  using sockets = loadBpfObject(objectFile('socket'), { maps, constants: { family: 4 } });
  const [wrong] = sockets.programs.values();
  const { uplinks } = paths.IPv4;
  const place = { ipFamily: 'IPv4', netns: netnsOf(wire.node), pinFolder: wire.pinFolder('IPv4') } as const;
  using other = new UplinkPrograms({ ...place, logger: noopLogger });
  const open = openLinks();
  expect(open).toBeGreaterThan(0);
  expect(() => other.put(wrong!, uplinks, uplinks)).toThrow(NativeError);
  expect(openLinks()).toBe(open);
  expect(programs('eth0')).toEqual(before);
});

/** How many links this process has open. */
function openLinks(): number {
  const links = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ''; // that of the folder itself
    }
  });
  return links.filter((link) => link.includes('bpf_link') || link.includes('bpf-link')).length;
}

describe.each([
  ['the link is detached', (pin: string) => using(pin).detach()],
  ['the link is unpinned', (pin: string) => rmSync(pin)],
  ['the pin is moved away', (pin: string) => renameSync(pin, `${pin}-away`)],
  ['a rule is deleted', () => wire.nft('flush', 'chain', 'inet', 'switchyard-ebpf-guard', 'guard4')],
  ['a rule is added', () => wire.nft('insert', 'rule', 'inet', 'switchyard-ebpf-guard', 'guard4', 'accept')],
  ['a chain is deleted', () => wire.nft('delete', 'chain', 'inet', 'switchyard-ebpf-guard', 'nat-prerouting4')],
  ['the table is deleted', () => wire.nft('delete', 'table', 'inet', 'switchyard-ebpf-guard')],
  ['the table is put to sleep', () => wire.nft('add', 'table', 'inet', 'switchyard-ebpf-guard', '{ flags dormant; }')],
  ['a masquerade address is deleted', () => void wire.maps.IPv4.maps.masq_addresses.delete(new Uint8Array(4))],
] as const)('when %s', (_, damage) => {
  test('it is noticed, healed, and right again', async () => {
    const path = paths.IPv4;
    expect(await path.findFaults(signal)).toEqual([]);
    await damage(`${wire.pinFolder('IPv4')}/lb_in-${wire.indexOf('eth0')}`);
    expect(await path.findFaults(signal)).toHaveLength(1);
    expect(await path.ensure(signal)).toBeGreaterThan(0);
    await paths.IPv6.ensure(signal);
    expect(await path.findFaults(signal)).toEqual([]);
    expect(await paths.IPv6.findFaults(signal)).toEqual([]);
    expect(await isAnswered('IPv4')).toBe(true);
  });
});

function using(pin: string): NonNullable<ReturnType<typeof openPinnedLink>> {
  return openPinnedLink(pin)!;
}

test('maps and builds are exchanged under load, and no connection is lost', async () => {
  const { client } = wire.site;
  const traffic = await connectWhile({ prober: client, requests: ipFamilies.map(request), lines: 2 }, async (count) => {
    for (let round = 0; round < 2; round++) {
      for (const family of ipFamilies) await exchangeMaps(family);
      for (const family of ipFamilies) await exchangeBuild(family, round);
      await reached(count, count() + 40);
    }
  });
  expect(traffic.failed).toEqual([]);
  for (const family of ipFamilies) await paths[family].ensure(signal);
});

/** Larger maps with the same content. */
async function exchangeMaps(family: IpFamily): Promise<void> {
  const before = wire.maps[family].maps;
  const shapes = mapShapes({ ...smallestSizes, frontends: smallestSizes.frontends * 2 });
  const larger = mapSetOf((name) => createMap(shapes[name]));
  for (const name of Object.keys(before) as (keyof typeof before)[]) {
    if (name !== 'statistics') copyMap(before[name], larger[name]);
  }
  await paths[family].ensure(signal); // the other build may have been the last one
  for (const maps of [larger, before]) {
    wire.openMaps[family].set(maps);
    expect(await paths[family].ensure(signal)).toBe(devices.length);
  }
  for (const map of Object.values(larger)) map[Symbol.dispose]();
}

/** A build that marks packets by other bits, in a process of its own. */
async function exchangeBuild(family: IpFamily, round: number): Promise<void> {
  await using other = wire.open(family, { marks: { service: 0x10 << round, reject: 0x1_0000 << round } });
  expect(await other.ensure(signal)).toBeGreaterThan(1);
  expect(programs('eth0')).toHaveLength(2);
}

async function reached(count: () => number, wanted: number): Promise<void> {
  for (let look = 0; look < 400 && count() < wanted; look++) await sleep(5);
  expect(count()).toBeGreaterThanOrEqual(wanted);
}

test.each(ipFamilies)('without the kernel telling, the source address is that of the device (%s)', async (family) => {
  const { client } = wire.site;
  const extra = family === 'IPv4' ? '172.18.0.77/24' : 'fd00:172:18::77/64';
  const seen = async (port: number) => client.probe({ ...request(family), port });
  await wire.ip('addr', 'add', extra, 'dev', 'eth0', ...(family === 'IPv6' ? ['nodad'] : []));
  {
    await using old = wire.open(family, { asksSource: false });
    await old.ensure(signal);
    const own = { status: 'answered', seenSource: wire.node.addresses[family] };
    if (family === 'IPv4') expect(await seen(farPort)).toMatchObject(own); // of several in IPv6 the kernel lists the newest first
    const { masq_addresses: addresses } = wire.maps[family].maps;
    const [eth0, any] = [Uint8Array.of(wire.indexOf('eth0'), 0, 0, 0), new Uint8Array(4)];
    addresses.update(eth0, mapped(extra.split('/')[0]!));
    addresses.update(any, mapped(wire.node.addresses[family]!));
    expect(await seen(farPort)).toMatchObject({ status: 'answered', seenSource: extra.split('/')[0] });
    expect(await seen(nodePort)).toMatchObject(own); // by a device without an address of its own
  }
  await wire.ip('addr', 'del', extra, 'dev', 'eth0');
  await paths[family].ensure(signal);
  expect(await seen(farPort)).toMatchObject({ status: 'answered', seenSource: wire.node.addresses[family] });
});

test("other people's NAT does not touch what is for a Service, neither before nor after it", async () => {
  const pod = wire.site.near.addresses.IPv4!;
  await wire.nft(`table ip cni {
    chain before { type nat hook prerouting priority -100; tcp dport ${keptPort} dnat to ${pod}:9; };
    chain after { type nat hook postrouting priority 100; ip daddr ${pod} masquerade; };
  }`);
  expect(await wire.site.client.probe({ ...request('IPv4'), port: keptPort })).toMatchObject({
    status: 'answered',
    seenSource: wire.site.lab.client.addresses.IPv4,
  });
  await wire.nft('delete', 'table', 'ip', 'cni');
});

test('a new device is a fault only at the second look', async () => {
  await wire.ip('link', 'add', 'vx0', 'type', 'vxlan', 'dstport', '4790', 'external', 'gpe');
  await wire.ip('addr', 'add', '172.30.0.1/24', 'dev', 'vx0');
  expect(await paths.IPv4.findFaults(signal)).toEqual([]);
  expect(await paths.IPv4.findFaults(signal)).toEqual([
    'the wire program for IPv4 on vx0 is not there yet',
    'masquerade addresses are not those of the network devices',
  ]);
  expect(await paths.IPv4.ensure(signal)).toBe(2);
  expect(await paths.IPv4.findFaults(signal)).toEqual([]);
  await wire.ip('link', 'del', 'vx0');
  await paths.IPv4.ensure(signal);
});

test('where looking at devices takes long, it is not done all the time', async () => {
  const stop = new AbortController();
  const pauses: number[] = [];
  let now = 0;
  const clock: Clock = {
    ...systemClock,
    monotonic: () => millis((now += 10)), // so long takes what is between two calls
    sleep: async (duration) => {
      pauses.push(duration);
      if (pauses.length === 2) stop.abort();
    },
  };
  await using path = wire.open('IPv4', { clock });
  await path.ensure(signal);
  const following = path.follow(stop.signal);
  for (const alias of ['changed', 'changed again']) {
    await wire.ip('link', 'set', 'eth0', 'alias', alias);
    await sleep(100); // it has read the devices, and waits for the next change
  }
  await following;
  expect(pauses).toEqual([90, 160]); // from 10 and 40 on to the beats nearest to 100 and 200 later
  await wire.ip('link', 'set', 'eth0', 'alias', '');
});

test('a new device has the program at once, and one that goes is forgotten', async () => {
  const stop = new AbortController();
  const following = ipFamilies.map((family) => paths[family].follow(stop.signal));
  const { client } = wire.site.lab;
  // A second network between client and node, over a device without an Ethernet header.
  const tunnel = (own: string) => [
    ['link', 'add', 'vx0', 'type', 'vxlan', 'dstport', '4790', 'external', 'gpe'],
    ['addr', 'add', own, 'dev', 'vx0'],
    ['link', 'set', 'vx0', 'up'],
  ];
  const remote = (to: string, by: string) => ['route', 'add', to, 'encap', 'ip', 'id', '7', 'dst', by, 'dev', 'vx0'];
  for (const args of tunnel('172.30.0.1/24')) await wire.ip(...args);
  await wire.ip(...remote('172.30.0.2/32', client.addresses.IPv4!));
  for (const args of tunnel('172.30.0.2/24')) await client.run('ip', args);
  await client.run('ip', remote('172.30.0.1/32', wire.node.addresses.IPv4!));
  wire.maps.IPv4.addNodeAddress('172.30.0.1');
  const seen = async (count: number): Promise<void> => {
    for (let look = 0; look < 100 && paths.IPv4.uplinks.length !== count; look++) await sleep(10);
    expect(paths.IPv4.uplinks).toHaveLength(count);
  };
  await seen(3);
  expect(await wire.site.client.probe({ ...request('IPv4'), address: '172.30.0.1' })).toMatchObject({
    status: 'answered',
    seenSource: wire.node.addresses.IPv4,
  });
  await wire.ip('link', 'del', 'vx0');
  await seen(2);
  expect(listPins(wire.pinFolder('IPv4')).toSorted()).toEqual(pinsOf(devices));
  stop.abort();
  await Promise.all(following);
});

test('patterns name the devices', async () => {
  await using path = wire.open('IPv4', { interfaces: ['et*', 'nothing'] });
  await path.ensure(signal);
  expect(path.uplinks.map(({ name }) => name)).toEqual(['eth0']);
  await using none = wire.open('IPv4', { interfaces: ['th0'] });
  await none.ensure(signal);
  expect(none.uplinks).toEqual([]);
  expect(await isAnswered('IPv4')).toBe(false);
  await paths.IPv4.ensure(signal);
  expect(await isAnswered('IPv4')).toBe(true);
});

test('behind a bridge that asks netfilter, the first packet of a connection is not lost', async () => {
  const own = wire.node.addresses.IPv4!;
  const { hardware, gateway } = await uplink();
  const move = (from: string, to: string) => [
    ['addr', 'add', `${own}/24`, 'dev', to], // first, or routes with this source go
    ['addr', 'del', `${own}/24`, 'dev', from],
    ['route', 'replace', 'default', 'via', gateway, 'dev', to],
  ];
  for (const args of [
    ['link', 'add', 'br0', 'address', hardware, 'type', 'bridge', 'stp_state', '0', 'forward_delay', '0'],
    ['link', 'set', 'br0', 'up'],
    ['link', 'set', 'eth0', 'master', 'br0'],
    ...move('eth0', 'br0'),
  ]) {
    await wire.ip(...args);
  }
  const asks = await wire.node.run('sh', ['-c', 'echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables']);
  expect(asks.exitCode, asks.stderr).toBe(0);
  await paths.IPv4.ensure(signal);
  expect(paths.IPv4.uplinks.map(({ name }) => name).toSorted()).toEqual(['br0', 'eth0', 'pod1']);
  expect(await isAnswered('IPv4')).toBe(true);
  for (const args of [['link', 'set', 'eth0', 'nomaster'], ...move('br0', 'eth0'), ['link', 'del', 'br0']]) {
    await wire.ip(...args);
  }
  await paths.IPv4.ensure(signal);
  expect(await isAnswered('IPv4')).toBe(true);
});

async function uplink(): Promise<{ readonly hardware: string; readonly gateway: string }> {
  const [, hardware = ''] = /link\/ether (\S+)/.exec(await wire.ip('link', 'show', 'eth0')) ?? [];
  const [, gateway = ''] = /via (\S+)/.exec(await wire.ip('route', 'show', 'default')) ?? [];
  return { hardware, gateway };
}

test('one family goes without the other, and the last takes the table along', async () => {
  expect(await paths.IPv4.remove(signal)).toEqual([
    'the wire program for IPv4 on 2 network devices',
    'chains of IPv4 in nftables table inet switchyard-ebpf-guard',
  ]);
  expect(await isAnswered('IPv4')).toBe(false);
  expect(await isAnswered('IPv6')).toBe(true);
  expect(await paths.IPv6.findFaults(signal)).toEqual([]);
  expect(await paths.IPv4.remove(signal)).toEqual([]);
  await using stranger = wire.open('IPv6');
  expect(await stranger.remove(signal)).toContain('nftables table inet switchyard-ebpf-guard');
  expect((await wire.nft('list', 'tables')).trim()).toBe('');
  expect(programs('eth0')).toEqual([]);
  for (const family of ipFamilies) {
    expect(listPins(wire.pinFolder(family))).toEqual([]);
  }
});

test('without links, the filter of an earlier process goes from a device that is no uplink any more', async () => {
  const filter = (device: string) =>
    findClsact({ ifindex: wire.indexOf(device), priority: filterPriorities.IPv4, netns: netnsOf(wire.node) });
  await wire.ip('link', 'add', 'vx0', 'type', 'vxlan', 'dstport', '4790', 'external', 'gpe');
  await using before = wire.open('IPv4', { mechanism: 'clsact' });
  await before.ensure(signal);
  expect([filter('eth0'), filter('vx0')]).toEqual([expect.any(Number), expect.any(Number)]);
  await using after = wire.open('IPv4', { mechanism: 'clsact', interfaces: ['eth0'] });
  await after.ensure(signal);
  expect([filter('eth0'), filter('vx0')]).toEqual([expect.any(Number), undefined]);
  await after.remove(signal);
  await wire.ip('link', 'del', 'vx0');
});

test('kernels without links have filters, one for each family', async () => {
  const [four, six] = ipFamilies.map((family) => wire.open(family, { mechanism: 'clsact' })) as [WirePath, WirePath];
  for (const path of [four, six]) {
    await path.ensure(signal);
    expect(await path.findFaults(signal)).toEqual([]);
    expect(await path.ensure(signal)).toBe(0);
  }
  expect([await isAnswered('IPv4'), await isAnswered('IPv6')]).toEqual([true, true]);
  const [left, right] = await Promise.all([four.remove(signal), six.remove(signal)]);
  expect([...left, ...right]).toHaveLength(4);
  expect([await isAnswered('IPv4'), await isAnswered('IPv6')]).toEqual([false, false]);
  expect((await wire.nft('list', 'tables')).trim()).toBe('');
  expect(await six.remove(signal)).toEqual([]);
});
