import { mkdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type IpFamily, ipFamilies, noopLogger } from '@switchyard/core';
import { type BpfObject, detachClsact, loadBpfObject, openPinnedLink } from '@switchyard/native';
import { type LabHost, type LabProcess, sitePort } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { objectFile } from '../../src/kernel/programs/object-files.ts';
import { readNetwork } from '../../src/kernel/wire/devices.ts';
import { defaultWireMarks } from '../../src/kernel/wire/guard-rules.ts';
import { filterPriorities, UplinkPrograms } from '../../src/kernel/wire/uplink-programs.ts';
import type { WirePath } from '../../src/kernel/wire/wire-path.ts';
import { netnsOf, signal, WireSite } from './wire-site.ts';

// Devices without an address, which only a route names. The test adds them after the start and does not name them to the agent.

const relay = fileURLToPath(new URL('tun-relay.pl', import.meta.url));
const vips: Readonly<Record<IpFamily, (n: number) => string>> = {
  IPv4: (n) => `198.51.100.${n}`,
  IPv6: (n) => `2001:db8:51::${n}`,
};
/** The client's address behind the device. */
const sources: Readonly<Record<IpFamily, string>> = { IPv4: '203.0.113.9', IPv6: '2001:db8:9::9' };
const services = { shop: 1, local: 2 } as const;

let wire: WireSite;
let client: LabHost;
const paths: WirePath[] = [];
const stop = new AbortController();
let following: readonly Promise<void>[] = [];

beforeAll(async () => {
  wire = await WireSite.create('wired');
  ({ client } = wire.site.lab);
  for (const family of ipFamilies) {
    const maps = wire.maps[family];
    maps.addNodeAddress(wire.node.addresses[family]!);
    for (const [name, number] of Object.entries(services)) {
      for (const protocol of ['tcp', 'udp'] as const) {
        const outside = name === 'local' ? 'local' : 'cluster+';
        maps.add({
          frontends: [
            ['nodePort', 30_000 + number],
            [vips[family](number), 80],
          ],
          protocol,
          actions: { pod: 'cluster', node: 'cluster', outside },
          endpoints: [[wire.site.near.addresses[family]!, sitePort, 'near']],
        });
      }
    }
    const path = wire.open(family);
    paths.push(path);
    await path.ensure(signal);
  }
  following = paths.map((path) => path.follow(stop.signal));
});

afterAll(async () => {
  stop.abort();
  await Promise.all(following);
  for (const path of paths) await path[Symbol.asyncDispose]();
  await wire[Symbol.asyncDispose]();
});

async function onClient(...args: readonly string[]): Promise<void> {
  const result = await client.run('ip', args);
  expect(result.exitCode, `ip ${args.join(' ')}: ${result.stderr}`).toBe(0);
}

const targets = (family: IpFamily): readonly string[] => [
  wire.node.addresses[family]!,
  ...Object.values(services).map((number) => vips[family](number)),
];

/** Routes between both ends, and no address on the node's but the link-local one that every device of IPv6 has. */
async function connect(device: string): Promise<void> {
  const gateway = 'fe80::a';
  for (const end of [(...args: string[]) => wire.ip(...args), onClient]) await end('link', 'set', device, 'up');
  await wire.ip('address', 'add', `${gateway}/64`, 'dev', device, 'nodad');
  for (const family of ipFamilies) {
    const bits = family === 'IPv4' ? 32 : 128;
    await onClient('address', 'add', `${sources[family]}/${bits}`, 'dev', device, ...(bits === 128 ? ['nodad'] : []));
    await wire.ip('route', 'add', `${sources[family]}/${bits}`, 'dev', device);
    const own = wire.node.addresses[family]!;
    // IPv4 answers ARP for the node's address at any device.
    const toNode = bits === 32 ? [] : ['via', gateway];
    const toVip = ['via', bits === 32 ? own : gateway, ...(bits === 32 ? ['onlink'] : [])];
    for (const to of targets(family)) {
      const by = to === own ? toNode : toVip;
      await onClient('route', 'add', `${to}/${bits}`, ...by, 'dev', device, 'src', sources[family]);
    }
  }
  await sleep(400); // the agent looks at devices every 100 to 300 ms
}

async function withCable(): Promise<() => Promise<unknown>> {
  await wire.ip('link', 'add', 'ptp0', 'type', 'veth', 'peer', 'name', 'ptp0', 'netns', client.namespace);
  await connect('ptp0');
  return () => wire.ip('link', 'del', 'ptp0');
}

async function withTunnel(): Promise<() => Promise<unknown>> {
  const process: LabProcess = wire.node.spawn('perl', [relay, 'tun7', netnsOf(client), 'tun7'], { logName: 'relay' });
  for (let look = 0; !readFileSync(process.logFile, 'utf8').includes('ready'); look++) {
    expect(look, readFileSync(process.logFile, 'utf8')).toBeLessThan(500);
    await sleep(10);
  }
  await connect('tun7');
  return () => process.stop();
}

describe.each([
  ['a veth device', 'ptp0', withCable],
  ['a tun device, which has no Ethernet header', 'tun7', withTunnel],
])('by %s with a route and no address', (_, name, open) => {
  let close: () => Promise<unknown>;

  beforeAll(async () => {
    close = await open();
  });

  afterAll(async () => {
    await close?.();
    await sleep(400);
    for (const { uplinks } of paths) expect(uplinks.map((device) => device.name)).not.toContain(name);
  });

  test.each(ipFamilies.flatMap((family) => (['tcp', 'udp'] as const).map((protocol) => [family, protocol] as const)))(
    '%s %s: NodePorts and load-balancer IPs answer, and Local keeps the client',
    async (family, protocol) => {
      for (const [service, number] of Object.entries(services)) {
        const seenSource = service === 'local' ? sources[family] : wire.node.addresses[family];
        for (const [address, port] of [
          [wire.node.addresses[family]!, 30_000 + number],
          [vips[family](number), 80],
        ] as const) {
          const result = await wire.site.client.probe({ protocol, address, port, timeout: 900 });
          expect(result, `${service} at ${address}`).toMatchObject({ status: 'answered', by: 'near', seenSource });
        }
      }
    },
  );
});

test('of many devices one look finds a detached program; of filters it covers some, and a round all', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `many${index}`);
  const all = async (command: (name: string) => string): Promise<void> => {
    const stdin = names.map((name) => `${command(name)}\n`).join('');
    expect(await wire.node.run('ip', ['-batch', '-'], { stdin })).toMatchObject({ exitCode: 0 });
  };
  await all((name) => `link add ${name} type veth peer name ${name}-peer`);
  await sleep(400);
  const [path] = paths;
  const last = names.at(-1)!;
  const fault = `the wire program for IPv4 on ${last} was detached`;
  expect(await path!.findFaults(signal)).toEqual([]);
  using link = openPinnedLink(`${wire.pinFolder('IPv4')}/lb_in-${wire.indexOf(last)}`);
  link?.detach();
  expect(await path!.findFaults(signal)).toEqual([fault]);
  expect(await path!.ensure(signal)).toBeGreaterThan(0);
  expect(await path!.findFaults(signal)).toEqual([]);

  const netns = netnsOf(wire.node);
  const read = () => readNetwork('IPv4', netns).devices;
  const many = read().filter(({ name }) => names.includes(name));
  using wireObject = loadWire();
  const pinFolder = `${wire.pinFolder('IPv4')}-many`;
  mkdirSync(pinFolder);
  using filters = new UplinkPrograms({ ipFamily: 'IPv4', netns, pinFolder, logger: noopLogger, mechanism: 'clsact' });
  filters.put(wireObject.programs.get('lb_in')!, many, read());
  expect(filters.links).toBeUndefined();
  const round = (): readonly string[] => [1, 2].flatMap(() => filters.findFaults(many, read));
  expect(round()).toEqual([]);
  detachClsact({ ifindex: wire.indexOf(last), priority: filterPriorities.IPv4, netns });
  expect(round()).toEqual([fault]);
  rmdirSync(pinFolder);
  await all((name) => `link del ${name}`);
});

function loadWire(): BpfObject {
  const maps = new Map(Object.entries(wire.maps.IPv4.maps));
  const { service, reject } = defaultWireMarks;
  const constants = { family: 4, service_mark: service, reject_mark: reject, asks_source: 1 };
  return loadBpfObject(objectFile('wire'), { maps, constants });
}

test('a program that was detached with its device is no fault, one that was detached from a device is', async () => {
  const netns = netnsOf(wire.node);
  const read = () => readNetwork('IPv4', netns).devices;
  await wire.ip('link', 'add', 'going', 'type', 'veth', 'peer', 'name', 'going-peer');
  const devices = read();
  const going = devices.filter(({ name }) => name === 'going');
  using wireObject = loadWire();
  const pinFolder = `${wire.pinFolder('IPv4')}-going`;
  mkdirSync(pinFolder);
  using programsOnGoing = new UplinkPrograms({ ipFamily: 'IPv4', netns, pinFolder, logger: noopLogger });
  programsOnGoing.put(wireObject.programs.get('lb_in')!, going, devices);
  expect(programsOnGoing.findFaults(going, read)).toEqual([]);
  await wire.ip('link', 'del', 'going');
  expect(programsOnGoing.findFaults(going, read)).toEqual([]);
  expect(programsOnGoing.findFaults(going, () => devices)).toEqual(['the wire program for IPv4 on going was detached']);
  rmSync(`${pinFolder}/lb_in-${going[0]!.index}`);
  rmdirSync(pinFolder);
});
