import type { IpFamily } from '@switchyard/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configurationOf, SocketSite } from './socket-site.ts';
import { actions } from '../../src/render/layouts.ts';
import { actionsFor, ports, udp, unallocated, vips, writeWorld } from './socket-world.ts';
import type { WrittenMaps } from './written-maps.ts';

const { signal } = new AbortController();
let site: SocketSite;

beforeAll(async () => {
  site = await SocketSite.create('esock', signal);
  writeWorld(site, 'IPv4');
  writeWorld(site, 'IPv6');
});

afterAll(() => site?.[Symbol.asyncDispose]());

/** How an application names an address: the socket's family, and the text. */
interface Way {
  readonly name: string;
  readonly family: IpFamily;
  readonly socket: 4 | 6;
  readonly text: (address: string) => string;
}

const ways: readonly Way[] = [
  { name: 'an IPv4 socket', family: 'IPv4', socket: 4, text: (address) => address },
  { name: 'an IPv6 socket', family: 'IPv6', socket: 6, text: (address) => address },
  { name: 'an IPv6 socket that talks IPv4', family: 'IPv4', socket: 6, text: (address) => `::ffff:${address}` },
];

let sockets = 0;

/** A new socket in the pod that asks, or on the node. */
async function open(protocol: 'tcp' | 'udp', way: Way, place: 'pod' | 'node' | 'insideA' = 'pod') {
  const id = `s${sockets++}`;
  const driver = site.drivers[place];
  await driver.ask(`open ${id} ${protocol} ${way.socket}`);
  const ask = (command: string, rest = ''): Promise<string> =>
    driver.ask(`${command} ${id}${rest === '' ? '' : ` ${rest}`}`);
  return {
    bind: (address: string, port: number) => ask('bind', `${way.text(address)} ${port}`),
    close: () => ask('close'),
    connect: (address: string, port: number) => ask('connect', `${way.text(address)} ${port}`),
    sendTo: (address: string, port: number) => ask('sendto', `${way.text(address)} ${port} who`),
    send: () => ask('send', 'more'),
    receive: () => ask('recv'),
    peer: () => ask('peer'),
    disconnect: () => ask('disconnect'),
    /** The pod that answers to a datagram. */
    answerer: async (address: string, port: number): Promise<string> => {
      await ask('sendto', `${way.text(address)} ${port} who`);
      return (await ask('recv')).split(' ')[0] ?? '';
    },
  };
}

const mapsOf = ({ family }: Way): WrittenMaps => site.instances[family].maps;
const addressOf = (pod: 'a' | 'b', { family }: Way): string => site.address(pod, family);

/** A UDP server at this port in pod a that was asked by a client on the node whose own port is a NodePort. */
async function callFromNodePort(way: Way, port: number) {
  const node = site.node.addresses[way.family] ?? '';
  const server = await open('udp', way, 'insideA');
  expect(await server.bind(addressOf('a', way), port)).toBe('ok');
  const client = await open('udp', way, 'node');
  expect(await client.bind(node, ports.nodePort)).toBe('ok');
  expect(await client.sendTo(addressOf('a', way), port)).toBe('ok');
  expect(await server.receive()).toBe(`who from ${way.text(node)} ${ports.nodePort}`);
  return { server, client };
}

describe.each(ways)('$name', (way) => {
  const vip = vips[way.family];

  test('connects to a pod and is shown the frontend; the pod sees the client', async () => {
    const socket = await open('tcp', way);
    expect(await socket.connect(vip, ports.both)).toBe('ok');
    expect(await socket.peer()).toBe(`${way.text(vip)} ${ports.both}`);
    const clientAddress = site.lab.nodes[0]?.podCidrs[way.family]
      ?.split(/[.:]/, 3)
      .join(way.family === 'IPv4' ? '.' : ':');
    expect(await socket.receive()).toMatch(new RegExp(`^[ab] ${clientAddress}`));
  });

  test('an unconnected UDP socket is answered by the frontend', async () => {
    const socket = await open('udp', way);
    expect(await socket.sendTo(vip, ports.both)).toBe('ok');
    expect(await socket.receive()).toMatch(new RegExp(`^[ab] .* from ${way.text(vip)} ${ports.both}$`));
  });

  test('a connected UDP socket is answered by the frontend', async () => {
    const socket = await open('udp', way);
    expect(await socket.connect(vip, ports.both)).toBe('ok');
    expect(await socket.send()).toBe('ok');
    expect(await socket.receive()).toMatch(new RegExp(`^[ab] .* from ${way.text(vip)} ${ports.both}$`));
    expect(await socket.peer()).toBe(`${way.text(vip)} ${ports.both}`);
  });

  test.each([
    ['without endpoints', ports.none, 'ECONNREFUSED'],
    ['without endpoints on this node', ports.dropped, 'EPERM'],
    ['that has no such port', ports.unknown, 'ECONNREFUSED'],
  ])('is refused at a service %s', async (_what, port, error) => {
    expect(await (await open('tcp', way)).connect(vip, port)).toBe(error);
    expect(await (await open('udp', way)).connect(vip, port)).toBe(error);
    expect(await (await open('udp', way)).sendTo(vip, port)).toBe(error);
  });

  test('is dropped at an unused address of the service CIDR', async () => {
    expect(await (await open('tcp', way)).connect(unallocated[way.family], 80)).toBe('EPERM');
    expect(await (await open('udp', way)).sendTo(unallocated[way.family], 80)).toBe('EPERM');
  });

  test('may ask by UDP port 0 which source address it would have', async () => {
    expect(await (await open('udp', way)).connect(vip, 0)).toBe('ok');
    expect(await (await open('udp', way)).connect(unallocated[way.family], 0)).toBe('ok');
  });

  test('uses NodePorts at node addresses and nowhere else', async () => {
    const node = site.node.addresses[way.family] ?? '';
    for (const place of ['pod', 'node'] as const) {
      const socket = await open('tcp', way, place);
      expect(await socket.connect(node, ports.nodePort)).toBe('ok');
      expect(await socket.receive()).toMatch(/^b /);
      expect(await socket.peer()).toBe(`${way.text(node)} ${ports.nodePort}`);
    }
    const elsewhere = await open('tcp', way);
    expect(await elsewhere.connect(addressOf('a', way), ports.nodePort)).toBe('ECONNREFUSED');
  });

  test('answers a client whose port is a NodePort, also by another socket at its own port, and still uses the NodePort itself', async () => {
    const node = site.node.addresses[way.family] ?? '';
    const { server, client } = await callFromNodePort(way, 8085);
    expect(await server.sendTo(node, ports.nodePort)).toBe('ok');
    expect(await client.receive()).toBe(`who from ${way.text(addressOf('a', way))} 8085`);
    expect(await (await open('udp', way, 'insideA')).answerer(node, ports.nodePort)).toBe('b');

    await server.close();
    const ofThisClient = await open('udp', way, 'insideA');
    expect(await ofThisClient.bind(addressOf('a', way), 8085)).toBe('ok');
    expect(await ofThisClient.connect(node, ports.nodePort)).toBe('ok');
    expect(await ofThisClient.send()).toBe('ok');
    expect(await client.receive()).toBe(`more from ${way.text(addressOf('a', way))} 8085`);
    await Promise.all([ofThisClient.close(), client.close()]);
  });

  test('does not take a NodePort for a client that called long ago', async () => {
    const node = site.node.addresses[way.family] ?? '';
    const { server, client } = await callFromNodePort(way, 8086);
    await client.close();
    mapsOf(way).configure({ ...configurationOf(site.node, way.family), udp_sticky_seconds: 0 });
    expect(await server.answerer(node, ports.nodePort)).toBe('b');
    mapsOf(way).configure(configurationOf(site.node, way.family));
    await server.close();
  });

  test('gets what its class gets: the node something else than a pod', async () => {
    expect(await (await open('udp', way)).answerer(vip, ports.byClass)).toBe('a');
    expect(await (await open('udp', way, 'node')).answerer(vip, ports.byClass)).toBe('b');
  });

  test('a pod reaches itself by its service, and sees its own address', async () => {
    const socket = await open('tcp', way, 'insideA');
    expect(await socket.connect(vip, ports.byClass)).toBe('ok');
    expect(await socket.receive()).toMatch(new RegExp(`^a ${addressOf('a', way)}`));
  });

  test('is left alone where rules of nftables carry the frontend', async () => {
    const socket = await open('udp', way);
    const { connections } = mapsOf(way).counters(ports.passed);
    mapsOf(way).empty('flows');
    expect(await socket.connect(vip, ports.passed)).toBe('ok');
    expect(await socket.sendTo(vip, ports.passed)).toBe('ok');
    expect(mapsOf(way).size('flows')).toBe(0);
    expect(mapsOf(way).counters(ports.passed)['connections']).toBe(connections);
  });

  test('what is no service is not touched, and leaves nothing', async () => {
    mapsOf(way).empty('flows');
    const socket = await open('tcp', way);
    expect(await socket.connect(addressOf('b', way), 8080)).toBe('ok');
    expect(await socket.peer()).toBe(`${way.text(addressOf('b', way))} 8080`);
    expect(await (await open('udp', way)).answerer(addressOf('a', way), 8080)).toBe('a');
    expect(mapsOf(way).size('flows')).toBe(0);
  });

  test('a UDP socket that connects again is shown what it is connected to now', async () => {
    const socket = await open('udp', way);
    expect(await socket.connect(vip, ports.byClass)).toBe('ok');
    expect(await socket.connect(addressOf('a', way), 8080)).toBe('ok');
    expect(await socket.peer()).toBe(`${way.text(addressOf('a', way))} 8080`);
    await socket.send();
    expect(await socket.receive()).toMatch(/^a .* 8080$/);
    expect(await socket.connect(vip, ports.byClass)).toBe('ok');
    expect(await socket.peer()).toBe(`${way.text(vip)} ${ports.byClass}`);
    // From now on Linux gives an IPv6 socket only what comes from that same pod.
    expect(await socket.disconnect()).toBe('ok');
    expect(await socket.peer()).toBe('ENOTCONN');
    expect(await socket.sendTo(vip, ports.byClass)).toBe('ok');
    expect(await socket.receive()).toMatch(new RegExp(`^a .* from ${way.text(vip)} ${ports.byClass}$`));
    expect(await socket.sendTo(addressOf('a', way), 8080)).toBe('ok');
    expect(await socket.receive()).toMatch(new RegExp(`^a .* from ${way.text(addressOf('a', way))} 8080$`));
  });

  test('a connected UDP socket that names the frontend again stays with its pod', async () => {
    const socket = await open('udp', way);
    expect(await socket.connect(vip, ports.both)).toBe('ok');
    const first = await socket.answerer(vip, ports.both);
    for (let datagram = 0; datagram < 8; datagram++) expect(await socket.answerer(vip, ports.both)).toBe(first);
    expect(await socket.peer()).toBe(`${way.text(vip)} ${ports.both}`);
  });

  test('a connected UDP socket that names another frontend goes there', async () => {
    const socket = await open('udp', way);
    expect(await socket.connect(vip, ports.both)).toBe('ok');
    const { connections = 0 } = mapsOf(way).counters(ports.byClass);
    expect(await socket.sendTo(vip, ports.byClass)).toBe('ok');
    expect(mapsOf(way).counters(ports.byClass)['connections']).toBe(connections + 1);
  });

  test('a connected UDP socket is not led on where its pod is a frontend too', async () => {
    const frontend = { address: addressOf('a', way), port: 8080, protocol: udp, actions: actionsFor(actions.cluster) };
    const socket = await open('udp', way);
    expect(await socket.connect(vip, ports.byClass)).toBe('ok');
    mapsOf(way).frontend({ ...frontend, service: ports.unswapped, cookie: ports.unswapped });
    await socket.send();
    expect(await socket.receive()).toMatch(/^a /);
    mapsOf(way).forgetFrontend(frontend);
  });

  test('a TCP socket that was refused and connects to the pod itself is shown the pod', async () => {
    const socket = await open('tcp', way);
    expect(await socket.connect(vip, ports.closed)).toBe('ECONNREFUSED');
    await site.drivers.a.ask(`listen late tcp ${addressOf('a', way)} 9 a`);
    expect(await socket.connect(addressOf('a', way), 9)).toBe('ok');
    expect(await socket.peer()).toBe(`${way.text(addressOf('a', way))} 9`);
    await site.drivers.a.ask('close late');
  });
});
