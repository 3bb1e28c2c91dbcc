import { type IpAddress, ipFamilies, parseIp } from '@switchyard/core';
import {
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabPod,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { traceFlow } from '../../src/trace/trace-flow.ts';
import type { TracedPacket } from '../../src/trace/trace-monitor.ts';

const { signal } = new AbortController();
let lab: Lab;
let node: LabNode;
let near: LabPod;
let client: Prober;
let self: Prober;
const port = 8080;

beforeAll(async () => {
  lab = await createLab({ name: 'ctrace', nodes: 2, ipFamilies }, signal);
  node = lab.nodes[0]!;
  near = await lab.addPod(node, 'near');
  startEchoServer(near, { pod: 'near', tcp: [port], udp: [port] });
  [client, self] = await Promise.all([createProber(lab.client, signal), createProber(node, signal)]);
  await self.awaitAnswer(
    { protocol: 'tcp', address: near.addresses.IPv4!, port, timeout: 200 },
    { by: 'near', interval: 20, timeout: 5000 },
  );
});

afterAll(() => lab?.[Symbol.asyncDispose]());

async function run(file: string, args: readonly string[], stdin = ''): Promise<string> {
  const result = await node.run(file, args, { stdin, env: { XTABLES_LOCKFILE: `${lab.folder}/xtables.lock` } });
  if (result.exitCode !== 0) throw new Error(`${file} ${args.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

/** A node port of a Service, as iptables has it: masqueraded, to the pod. */
function iptablesRules(to: IpAddress): string {
  return [
    '*nat',
    ':SWY-NODEPORT - [0:0]',
    `-A PREROUTING -p tcp --dport 30080 -j SWY-NODEPORT`,
    `-A SWY-NODEPORT -p tcp -j DNAT --to-destination ${to}:${port}`,
    '-A POSTROUTING -p tcp --dport 8080 -j MASQUERADE',
    'COMMIT',
    '',
  ].join('\n');
}

function fromClient(packet: Partial<TracedPacket> = {}): { packet: TracedPacket; send: () => Promise<unknown> } {
  const whole: TracedPacket = {
    family: 'IPv4',
    protocol: 'TCP',
    source: lab.client.addresses.IPv4!,
    address: node.addresses.IPv4!,
    port: 30080,
    ...packet,
  };
  const protocol = whole.protocol === 'UDP' ? 'udp' : 'tcp';
  const send = (): Promise<unknown> =>
    client.probe({ protocol, address: whole.address, port: whole.port, timeout: 500 });
  return { packet: whole, send };
}

const table = 'inet swy-some-proxy';

/** Rules of any proxy; removed after each test. */
async function nftRules(rules: string): Promise<void> {
  await run(
    'nft',
    ['-f', '-'],
    `table ${table} { chain pre { type nat hook prerouting priority dstnat; ${rules}\n }\n}\n`,
  );
}

afterEach(async () => {
  expect((await run('nft', ['list', 'tables'])).split('\n').filter((line) => line.includes('trace'))).toEqual([]);
  await run('nft', ['-f', '-'], `table ${table} {}\ndelete table ${table}\n`);
});

describe('the way of a packet in the kernel', () => {
  test.each(ipFamilies)('nftables, %s: stations, rules, conntrack and route, both directions', async (family) => {
    const to = near.addresses[family]!;
    const [ip, target] = family === 'IPv4' ? ['ip', `${to}:${port}`] : ['ip6', `[${to}]:${port}`];
    await nftRules(`tcp dport 30080 dnat ${ip} to ${target}`);
    const { packet, send } = fromClient({
      family,
      source: lab.client.addresses[family]!,
      address: node.addresses[family]!,
    });
    const lines = await traceFlow(node, packet, send, signal);
    const text = lines.join('\n');
    expect(lines[0]).toMatch(/^comes in by eth0: .* -> .*30080 tcp$/);
    expect(text).toContain(`prerouting  ${table}/pre  tcp dport 30080 dnat ${ip} to ${target}  => accept`);
    expect(text).toMatch(/leaves by pod\d+: .*:8080 tcp/);
    expect(text).toMatch(/answer:\ncomes in by pod\d+: /);
    expect(text).toMatch(/conntrack: .*30080 tcp, answered as .*:8080 -> /);
    expect(text).toMatch(/route: .* dev pod\d+/);
  });

  test.each([
    ['iptables-nft', 'iptables-nft-restore', 'prerouting  ip nat/SWY-NODEPORT  meta l4proto tcp'],
    ['iptables-legacy', 'iptables-legacy-restore', '  nat/SWY-NODEPORT  -p tcp -j DNAT --to-destination'],
  ])('%s: the rule that translated it, and what became of its addresses', async (_variant, restore, rule) => {
    await run(restore, [], iptablesRules(near.addresses.IPv4!));
    try {
      const { packet, send } = fromClient();
      const text = (await traceFlow(node, packet, send, signal)).join('\n');
      expect(text).toContain(rule);
      expect(text).toContain(` -> ${near.addresses.IPv4}:${port} tcp  (changed)`);
      expect(text).toMatch(new RegExp(`leaves by pod\\d+: ${node.addresses.IPv4}:\\d+ -> .*  \\(changed\\)`));
    } finally {
      await run(restore, [], '*nat\n-F\n-X\nCOMMIT\n');
    }
  });

  test('a drop: the rule, and that it went no further', async () => {
    await nftRules('udp dport 30080 drop');
    const { packet, send } = fromClient({ protocol: 'UDP' });
    const text = (await traceFlow(node, packet, send, signal)).join('\n');
    expect(text).toContain(
      `prerouting  ${table}/pre  udp dport 30080 drop  => drop\nit went no further\nno answer passed`,
    );
    expect(text).toContain('conntrack: no entry');
  });

  test('a refusal: the packet is for the node, which answers by itself', async () => {
    const { packet, send } = fromClient();
    const text = (await traceFlow(node, packet, send, signal)).join('\n');
    expect(text).toMatch(/is for the node: .*\nanswer:\nis sent by the node: .*:30080 -> /);
  });

  test('a socket that was led elsewhere before there was a packet: what the node sent instead', async () => {
    const packet: TracedPacket = { family: 'IPv4', protocol: 'TCP', address: parseIp('10.96.0.10'), port: 80 };
    const send = (): Promise<unknown> => self.probe({ protocol: 'tcp', address: near.addresses.IPv4!, port });
    const text = (await traceFlow(node, packet, send, signal)).join('\n');
    expect(text).toContain('led it elsewhere:\nis sent by the node: ');
    expect(text).toMatch(/leaves by pod\d+: .*:8080 tcp/);
  });

  test('two at once wait for each other, and each traces its own flow', async () => {
    const both = [30080, 30081].map((to) => {
      const { packet, send } = fromClient({ port: to });
      return traceFlow(node, packet, send, signal);
    });
    for (const [index, lines] of (await Promise.all(both)).entries()) {
      expect(lines[0]).toMatch(new RegExp(`^comes in by eth0: .* -> .*:3008${index} tcp$`));
    }
  });

  test('a packet that never comes here is reported, and a failure is a line', async () => {
    const { packet } = fromClient();
    const failing = (): Promise<unknown> => Promise.reject(new Error('the prober is gone'));
    const lines = await traceFlow(node, packet, failing, signal);
    expect(lines.slice(0, 2)).toEqual([
      'sending failed: the prober is gone',
      `no packet to ${packet.address} port 30080/TCP came through nftables' hooks here, nor another of this sender`,
    ]);
  });
});
