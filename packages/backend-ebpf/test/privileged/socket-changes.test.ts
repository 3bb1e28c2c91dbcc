import { dirname } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { actions, endpointFlags } from '../../src/render/layouts.ts';
import { attachSockets, configurationOf, SocketSite } from './socket-site.ts';
import {
  actionsFor,
  endpointOf,
  type PortName,
  ports,
  republish,
  slotsOf,
  udp,
  vips,
  writeWorld,
} from './socket-world.ts';
import type { WrittenMaps } from './written-maps.ts';

const { signal } = new AbortController();
const vip = vips.IPv4;
let site: SocketSite;
let maps: WrittenMaps;
let sockets = 0;

beforeAll(async () => {
  site = await SocketSite.create('esocku', signal);
  maps = site.instances.IPv4.maps;
});

afterAll(() => site?.[Symbol.asyncDispose]());

beforeEach(() => {
  writeWorld(site, 'IPv4');
  maps.empty('flows');
  maps.empty('affinity');
});

async function open(protocol: 'tcp' | 'udp'): Promise<string> {
  const id = `s${sockets++}`;
  await site.drivers.pod.ask(`open ${id} ${protocol} 4`);
  return id;
}

/** Who answers a datagram that an unconnected socket sends. */
async function answerer(id: string, port: number = ports.changing): Promise<string> {
  const [sent, received = ''] = await site.drivers.pod.all(`sendto ${id} ${vip} ${port} who`, `recv ${id}`);
  return sent === 'ok' ? (received.split(' ')[0] ?? '') : (sent ?? '');
}

const tally = (count: number, protocol: string, port: number, driver = site.drivers.pod): Promise<string> =>
  driver.ask(`tally ${count} ${protocol} ${vip} ${port}`);

/** The endpoint at a pod is another one now, by the same id. */
function reuse(name: PortName, pod: 'a' | 'b', generation: number): void {
  const service = ports[name];
  maps.endpoint(endpointOf(service, pod), { address: site.address(pod, 'IPv4'), port: 8080, service, generation });
}

describe('an unconnected UDP socket', () => {
  test('keeps its pod when the set changes, while a new socket gets the new one', async () => {
    const id = await open('udp');
    expect(await answerer(id)).toBe('a');
    republish(maps, 'changing', ['b']);
    expect(await answerer(id)).toBe('a');
    expect(await answerer(await open('udp'))).toBe('b');
  });

  test('gets another pod when its own is gone', async () => {
    const id = await open('udp');
    expect(await answerer(id)).toBe('a');
    republish(maps, 'changing', ['b']);
    maps.kill(endpointOf(ports.changing, 'a'));
    expect(await answerer(id)).toBe('b');
  });

  test('is not misled by an id that another endpoint has now', async () => {
    const id = await open('udp');
    expect(await answerer(id)).toBe('a');
    reuse('changing', 'a', 2);
    republish(maps, 'changing', ['b']);
    expect(await answerer(id)).toBe('b');
  });

  test('gets a pod anew when it was silent for longer than the time to keep it', async () => {
    const id = await open('udp');
    expect(await answerer(id)).toBe('a');
    republish(maps, 'changing', ['b']);
    maps.configure({ ...configurationOf(site.node, 'IPv4'), udp_sticky_seconds: 0 });
    expect(await answerer(id)).toBe('b');
    maps.configure(configurationOf(site.node, 'IPv4'));
  });

  test('writes two entries once, and is counted once', async () => {
    const before = maps.counters(ports.changing)['connections'] ?? 0;
    const id = await open('udp');
    expect(await answerer(id)).toBe('a');
    const { values } = maps.map('flows').entries();
    expect(maps.size('flows')).toBe(2);
    for (let datagram = 0; datagram < 5; datagram++) expect(await answerer(id)).toBe('a');
    expect(maps.map('flows').entries().values).toEqual(values);
    expect(maps.counters(ports.changing)['connections']).toBe(before + 1);
  });

  test('is shown the frontend again when its entry was forgotten', async () => {
    const id = await open('udp');
    expect(await answerer(id)).toBe('a');
    maps.empty('flows');
    await site.drivers.pod.ask(`sendto ${id} ${vip} ${ports.changing} who`);
    expect(await site.drivers.pod.ask(`recv ${id}`)).toMatch(new RegExp(`from ${vip} ${ports.changing}$`));
  });

  test('that talks to two frontends of one pod is answered by the one it asked last', async () => {
    const id = await open('udp');
    for (const port of [ports.changing, ports.byClass, ports.changing]) {
      const [, received] = await site.drivers.pod.all(`sendto ${id} ${vip} ${port} who`, `recv ${id}`);
      expect(received).toMatch(new RegExp(`^a .* from ${vip} ${port}$`));
    }
  });
});

describe('a connection', () => {
  test.each(['tcp', 'udp'] as const)('by %s lives on when its pod gets no new ones', async (protocol) => {
    const id = await open(protocol);
    const driver = site.drivers.pod;
    expect(await driver.ask(`connect ${id} ${vip} ${ports.changing}`)).toBe('ok');
    if (protocol === 'tcp') expect(await driver.ask(`recv ${id}`)).toMatch(/^a /);
    republish(maps, 'changing', ['b']);
    maps.kill(endpointOf(ports.changing, 'a'));
    expect(await driver.ask(`send ${id} still`)).toBe('ok');
    expect(await driver.ask(`recv ${id}`)).toMatch(/^a/);
    expect(await driver.ask(`peer ${id}`)).toBe(`${vip} ${ports.changing}`);
    expect(await tally(5, protocol, ports.changing)).toBe('b=5');
  });

  test('is refused from the moment the set is empty, and again accepted', async () => {
    republish(maps, 'changing', []);
    expect(await tally(1, 'tcp', ports.changing)).toBe('ECONNREFUSED=1');
    republish(maps, 'changing', ['b'], 2);
    expect(await tally(1, 'tcp', ports.changing)).toBe('b=1');
  });

  test('is counted, as is one that is refused or dropped', async () => {
    const before = ports.both;
    const counted = async (port: number): Promise<unknown> => {
      const was = maps.counters(port);
      await tally(3, 'tcp', port);
      const is = maps.counters(port);
      return Object.fromEntries(
        Object.entries(is).flatMap(([name, value]) => (value === was[name] ? [] : [[name, value - (was[name] ?? 0)]])),
      );
    };
    expect(await counted(before)).toEqual({ connections: 3 });
    expect(await counted(ports.none)).toEqual({ no_endpoints: 3 });
    expect(await counted(ports.dropped)).toEqual({ no_local_endpoint: 3 });
    const all = maps
      .map('statistics')
      .entries()
      .values.reduce((sum, byte) => sum + byte, 0);
    await tally(3, 'tcp', ports.unknown);
    expect(
      maps
        .map('statistics')
        .entries()
        .values.reduce((sum, byte) => sum + byte, 0),
    ).toBe(all);
  });
});

describe('session affinity', () => {
  test('keeps all sockets of a pod at one endpoint, and forgets it when it is gone', async () => {
    const first = (await tally(30, 'tcp', ports.affinity)).split('=')[0] as 'a' | 'b';
    expect(await tally(30, 'udp', ports.affinity)).toBe(`${first}=30`);
    expect(maps.size('affinity')).toBe(1);
    maps.kill(endpointOf(ports.affinity, first));
    const other = first === 'a' ? 'b' : 'a';
    republish(maps, 'affinity', [other]);
    expect(await tally(10, 'tcp', ports.affinity)).toBe(`${other}=10`);
  });

  test('is one for each network namespace', async () => {
    await tally(1, 'tcp', ports.affinity);
    await tally(1, 'tcp', ports.affinity, site.drivers.node);
    expect(maps.size('affinity')).toBe(2);
  });

  test('leaves an endpoint that left the set, though it is alive', async () => {
    const first = (await tally(1, 'tcp', ports.affinity)).split('=')[0] as 'a' | 'b';
    const other = first === 'a' ? 'b' : 'a';
    const { alive } = endpointFlags;
    const endpoint = { address: site.address(first, 'IPv4'), port: 8080, service: ports.affinity, flags: alive };
    maps.endpoint(endpointOf(ports.affinity, first), endpoint);
    republish(maps, 'affinity', [other]);
    expect(await tally(5, 'tcp', ports.affinity)).toBe(`${other}=5`);
  });
});

test('other protocols are not touched, nor guarded', async () => {
  await site.node.run('sysctl', ['-qw', 'net.ipv4.ping_group_range=0 0']);
  const { node } = site.drivers;
  const answers = await node.all(
    'open i ping 4',
    `connect i ${vip} 0`,
    'open t tcp 4',
    `connect t ${vip} ${ports.unknown}`,
  );
  expect(answers).toEqual(['ok', 'ok', 'ok', 'ECONNREFUSED']);
});

test('both pods of a set get about the same share', async () => {
  const shares = await tally(600, 'udp', ports.both);
  const [a = 0, b = 0] = shares.split(' ').map((share) => Number(share.split('=')[1]));
  expect(a + b).toBe(600);
  // 600 fair draws are within 80 of the half but for one time in ten billion.
  expect(Math.abs(a - 300)).toBeLessThan(80);
});

describe('where the programs are', () => {
  test('a cgroup below has them too', async () => {
    await site.move(site.drivers.pod, `${site.cgroup}/below/and-below`);
    expect(await tally(2, 'tcp', ports.changing)).toBe('a=2');
  });

  test('with the scope "host" only sockets of the host network namespace get endpoints', async () => {
    using stack = new DisposableStack();
    const cgroup = `${dirname(site.cgroup)}/host-only`;
    const { node, pod } = site.drivers;
    await site.move(node, cgroup);
    await site.move(pod, cgroup);
    const host = attachSockets(stack, 'IPv4', { cgroup, isHostOnly: true });
    host.maps.configure(configurationOf(site.node, 'IPv4'));
    host.maps.service(1, { cookie: 1 });
    host.maps.frontend({
      address: vip,
      port: 80,
      protocol: udp,
      service: 1,
      cookie: 1,
      actions: actionsFor(actions.reject),
    });
    await pod.all('open p udp 4', 'open q udp 4');
    await node.ask('open n udp 4');
    expect(await node.ask(`connect n ${vip} 80`)).toBe('ECONNREFUSED');
    expect(await pod.ask(`connect p ${vip} 80`)).toBe('ok');
    expect(await pod.ask(`connect q ${vip} ${ports.unknown}`)).toBe('ok');
    await site.move(node, site.cgroup);
    await site.move(pod, site.cgroup);
  });
});

test('while sets are swapped under load no connection reaches the pod of another service', async () => {
  const done = new AbortController();
  let swaps = 0;
  const swap = async (): Promise<void> => {
    const words = [1, 2].map((range) => {
      const at = slotsOf(ports.swapped) + range * 4;
      return maps.slots(
        ports.swapped,
        at,
        Array.from({ length: range }, () => endpointOf(ports.swapped, 'a')),
      );
    });
    while (!done.signal.aborted) {
      for (let turn = 0; turn < 1000; turn++) maps.publish(ports.swapped, 'cluster_set', words[swaps++ % 2] ?? 0n);
      await new Promise(setImmediate);
    }
  };
  const swapping = swap();
  const answers = await Promise.all([
    tally(3000, 'udp', ports.swapped),
    tally(3000, 'udp', ports.unswapped, site.drivers.node),
    tally(300, 'tcp', ports.swapped, site.drivers.insideA),
  ]);
  done.abort();
  await swapping;
  expect(answers).toEqual(['a=3000', 'b=3000', 'a=300']);
  expect(swaps).toBeGreaterThan(10_000);
});
