import { type IpFamily, ipFamilies, parseCidr, type Protocol, seconds } from '@switchyard/core';
import {
  connectWhile,
  type LabHost,
  type LabNode,
  type ProbeConnection,
  type ProbeRequest,
  startSctpServers,
} from '@switchyard/lab';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { LoadBalancerSpec } from '../../src/spec/load-balancer-spec.ts';
import {
  answerOf,
  answersOf,
  createKernelLab,
  echoPort,
  type KernelLab,
  portOn,
  run,
  signal,
  specWith,
  targetsOf,
  vip,
} from './kernel-lab.ts';

let kernel: KernelLab;
const port = 80;
const all = ['node1', 'node2', 'node3'];
const to = (family: IpFamily, protocol: 'tcp' | 'udp', changes: Partial<ProbeRequest> = {}): ProbeRequest => ({
  protocol,
  address: vip[family],
  port,
  timeout: 1000,
  ...changes,
});

interface DirectOptions {
  readonly nodes?: readonly LabHost[];
  readonly draining?: string;
  readonly changes?: Partial<LoadBalancerSpec>;
}

/** TCP, UDP and SCTP on one port of both virtual addresses. */
function direct({ nodes = kernel.lab.nodes, draining, changes = {} }: DirectOptions = {}): LoadBalancerSpec {
  const targets = targetsOf(nodes, port, draining);
  const ports = (['TCP', 'UDP', 'SCTP'] satisfies Protocol[]).map((protocol) => portOn(port, protocol, targets));
  return specWith(ports, { path: 'transparent', ...changes });
}

/** Acts as a node's proxy for a load-balancer IP of mode VIP: answers for it. Counts errors about connections. */
function answerForVip(node: LabNode): Promise<string> {
  const redirect = (family: IpFamily): string =>
    `${family === 'IPv4' ? 'ip' : 'ip6'} daddr ${vip[family]} meta l4proto { tcp, udp } th dport ${port} redirect to :${echoPort}`;
  const accept = (family: IpFamily): string =>
    `${family === 'IPv4' ? 'ip' : 'ip6'} daddr ${vip[family]} meta l4proto 132 redirect`;
  const rules = [
    'table inet proxy {',
    'chain answer { type nat hook prerouting priority -100;',
    ...ipFamilies.flatMap((family) => [redirect(family), accept(family)]),
    '}',
    'chain errors { type filter hook prerouting priority -150;',
    'ct state related icmp type destination-unreachable counter',
    'ct state related icmpv6 type packet-too-big counter',
    '}',
    '}\n',
  ];
  return run(node, 'nft', ['-f', '-'], rules.join('\n'));
}

beforeAll(async () => {
  kernel = await createKernelLab('lbkern2', 3);
  for (const node of kernel.lab.nodes) await answerForVip(node);
});
afterAll(() => kernel?.[Symbol.asyncDispose]());

beforeEach(async () => {
  await kernel.apply(direct());
});
afterEach(() => {
  kernel.up = all;
});

describe.each(ipFamilies)('%s', (family) => {
  test.each(['tcp', 'udp'] as const)('%s reaches all nodes, which see the client itself', async (protocol) => {
    expect(new Set(await answersOf(kernel.client, to(family, protocol), 40))).toEqual(new Set(all));
    expect(await kernel.client.probe(to(family, protocol))).toMatchObject({
      status: 'answered',
      seenSource: kernel.lab.client.addresses[family],
    });
  });

  test('SCTP does too', async () => {
    for (const node of kernel.lab.nodes) await startSctpServers(node, node.name, signal);
    const source = kernel.lab.client.addresses[family] ?? '';
    const results = await kernel.client.sctp({ source, address: vip[family], port, count: 20 });
    expect(new Set(results.map(answerOf))).toEqual(new Set(all));
    expect(results[0]).toMatchObject({ seenSource: source });
  });

  test('held TCP connections survive a node that joins, a restart, and the DOWN of their own node', async () => {
    const [first, second] = kernel.lab.nodes as [LabNode, LabNode, LabNode];
    await kernel.apply(direct({ nodes: [first, second] }));
    const held = await openMany(family, 12);
    expect(new Set(held.map(({ node }) => node))).toEqual(new Set(['node1', 'node2']));
    expect(await kernel.apply(direct())).toBe('applied');
    expect(await kernel.apply(direct())).toBe('unchanged'); // another forwarder, which found all there
    expect(await answersOf(kernel.client, to(family, 'tcp'), 30)).toContain('node3');
    expect(await exchangeAll(held)).toEqual(['echoed']);
    kernel.up = ['node2', 'node3'];
    await kernel.apply(direct());
    expect(await answersOf(kernel.client, to(family, 'tcp'), 20)).not.toContain('node1');
    expect(await exchangeAll(held)).toEqual(['echoed']);
    for (const { connection } of held) await connection.close();
  });

  test('a UDP flow stays while nodes join and its node drains, and moves when its node goes DOWN', async () => {
    const [first, second] = kernel.lab.nodes as [LabNode, LabNode, LabNode];
    await kernel.apply(direct({ nodes: [first, second] }));
    const flows = Array.from({ length: 8 }, (_, index) => to(family, 'udp', { sourcePort: 43_000 + index }));
    const answers = async (): Promise<readonly string[]> =>
      (await Promise.all(flows.map((flow) => kernel.client.probe(flow)))).map(answerOf);
    const before = await answers();
    expect(new Set(before)).toEqual(new Set(['node1', 'node2']));
    await kernel.apply(direct());
    expect(await answers()).toEqual(before);
    await kernel.apply(direct({ draining: 'node1' }));
    expect(await answers()).toEqual(before);
    expect(await answersOf(kernel.client, to(family, 'udp'), 20)).not.toContain('node1');
    kernel.up = ['node2', 'node3'];
    await kernel.apply(direct({ draining: 'node1' }));
    const after = await answers();
    expect(after).not.toContain('node1');
    expect(after.filter((_, index) => before[index] === 'node2')).toEqual(before.filter((node) => node === 'node2'));
  });

  test('a flow and a client that got another node stay with that one when the first is back', async () => {
    const flow = to(family, 'udp', { sourcePort: 43_100 });
    const changes = { sessionAffinity: { kind: 'clientIP', timeout: seconds(60) } } as const;
    for (const options of [{}, { changes }]) {
      const seen: string[] = [];
      for (const up of [['node1'], ['node2'], all]) {
        kernel.up = up;
        await kernel.apply(direct(options));
        seen.push(answerOf(await kernel.client.probe(flow)));
        if (options.changes !== undefined) seen.push(...(await answersOf(kernel.client, to(family, 'tcp'), 6)));
      }
      expect(seen.filter((node, index) => index === 0 || node !== seen[index - 1])).toEqual(['node1', 'node2']);
    }
  });

  test('source ranges drop other clients', async () => {
    const outside = (['192.0.2.0/24', '2001:db8::/32'] as const).map(parseCidr);
    const inside = (['172.18.0.0/24', 'fd00:172:18::/64'] as const).map(parseCidr);
    await kernel.apply(direct({ changes: { sourceRanges: outside } }));
    expect(await answersOf(kernel.client, to(family, 'tcp', { timeout: 400 }), 2)).toEqual(['timeout', 'timeout']);
    await kernel.apply(direct({ changes: { sourceRanges: [...outside, ...inside] } }));
    expect(all).toContain(answerOf(await kernel.client.probe(to(family, 'tcp'))));
  });

  test('with ClientIP affinity all connections of a client go to one node, also when another one joins', async () => {
    const changes = { sessionAffinity: { kind: 'clientIP', timeout: seconds(60) } } as const;
    const former = Array.from({ length: 12 }, (_, index) => to(family, 'tcp', { sourcePort: 11_200 + index }));
    const answers = (): Promise<readonly string[]> =>
      Promise.all(former.map(async (request) => answerOf(await kernel.client.probe(request))));
    expect(new Set(await answers()).size).toBeGreaterThan(1);
    const chosen = new Set<string>();
    for (const nodes of [kernel.lab.nodes.slice(0, 2), kernel.lab.nodes]) {
      await kernel.apply(direct({ nodes, changes }));
      for (const answer of await answersOf(kernel.client, to(family, 'tcp'), 12)) chosen.add(answer);
    }
    for (const answer of await answers()) chosen.add(answer); // ports of connections without affinity, used again
    expect([...chosen]).toHaveLength(1);
    kernel.up = all.filter((name) => !chosen.has(name));
    await kernel.apply(direct({ changes }));
    const next = new Set(await answersOf(kernel.client, to(family, 'tcp'), 12));
    expect(next.size).toBe(1);
    expect(kernel.up).toContain([...next][0]);
  });

  test('chains with the names of an earlier version are replaced; connections and clients keep their node', async () => {
    const changes = { sessionAffinity: { kind: 'clientIP', timeout: seconds(60) } } as const;
    const table = ['netdev', 'switchyard-lb'];
    const chains = async (): Promise<readonly string[]> =>
      [...(await run(kernel.lab.loadBalancer, 'nft', ['list', 'table', ...table])).matchAll(/chain (\S+) \{/g)].map(
        ([, name = '']) => name,
      );
    await kernel.apply(direct({ changes }));
    const held = await openMany(family, 4);
    const current = await chains();
    const renamed = current.filter((name) => name.startsWith('affinity-'));
    expect(renamed.length).toBeGreaterThan(1);
    for (const name of renamed) {
      const former = name.replace('affinity-replace-', 'greet-').replace('affinity-remember-', 'meet-');
      await run(kernel.lab.loadBalancer, 'nft', ['rename', 'chain', ...table, name, former]);
    }
    expect(await kernel.apply(direct({ changes }))).toBe('applied');
    expect([...(await chains())].sort()).toEqual([...current].sort());
    expect(await exchangeAll(held)).toEqual(['echoed']);
    const nodes = new Set(held.map(({ node }) => node));
    expect(new Set(await answersOf(kernel.client, to(family, 'tcp'), 6))).toEqual(nodes);
    expect(nodes.size).toBe(1);
    for (const { connection } of held) await connection.close();
  });

  test.each(['tcp', 'udp'] as const)('%s is refused while no node is UP', async (protocol) => {
    kernel.up = [];
    await kernel.apply(direct());
    expect(answerOf(await kernel.client.probe(to(family, protocol, { timeout: 1500 })))).toBe('refused');
  });

  test('datagrams in fragments arrive whole, all parts at one node', async () => {
    const { stdout, stderr } = await kernel.lab.client.run('perl', ['-e', largeDatagrams, vip[family], `${port}`]);
    expect(`${stdout}${stderr}`).toBe('10 of 10\n');
  });

  test('an error about a connection, such as "packet too big", reaches the node that has it', async () => {
    const [held] = await openMany(family, 1);
    const { stdout } = await kernel.lab.client.run('ss', ['-tnH', 'state', 'established', 'dst', `[${vip[family]}]`]);
    const localPort = /:(\d+) +\S+:80\b/.exec(stdout)?.[1] ?? 'none';
    const own = kernel.lab.client.addresses[family] ?? '';
    await run(kernel.lab.client, 'perl', ['-e', packetTooBig, own, localPort, vip[family], `${port}`]);
    const counted = async (): Promise<readonly string[]> => {
      const texts = await Promise.all(
        kernel.lab.nodes.map((node) => run(node, 'nft', ['list', 'chain', 'inet', 'proxy', 'errors'])),
      );
      const type = family === 'IPv4' ? 'icmp type' : 'icmpv6 type';
      const hasCounted = (text: string): boolean =>
        text.split('\n').some((line) => line.includes(type) && !line.includes('packets 0'));
      return kernel.lab.nodes.flatMap(({ name }, index) => (hasCounted(texts[index] ?? '') ? name : []));
    };
    await expect.poll(counted).toEqual([held?.node]);
    await held?.connection.close();
  });
});

test('no attempt is lost while nodes drain, go DOWN and serve on, go, and come back', async () => {
  const requests = ipFamilies.flatMap((family) => (['tcp', 'udp'] as const).map((protocol) => to(family, protocol)));
  const { count, failed } = await connectWhile({ prober: kernel.client, requests, lines: 2 }, async () => {
    for (const node of kernel.lab.nodes) {
      const others = kernel.lab.nodes.filter((one) => one !== node);
      await kernel.apply(direct({ draining: node.name }));
      kernel.up = others.map(({ name }) => name);
      await kernel.apply(direct({ draining: node.name }));
      await kernel.apply(direct({ nodes: others }));
      kernel.up = all;
      await kernel.apply(direct());
    }
  });
  expect(failed).toEqual([]);
  expect(count).toBeGreaterThan(100);
});

test('only the ports of the load balancer are handed on', async () => {
  const other = to('IPv4', 'tcp', { port: 81, timeout: 1500 });
  expect(answerOf(await kernel.client.probe(other))).toBe('refused'); // by the load balancer's own host
});

test('nothing of it stays in the kernel when it is no longer asked for', async () => {
  expect(await run(kernel.lab.loadBalancer, 'nft', ['list', 'tables'])).toBe('table netdev switchyard-lb\n');
  expect(await kernel.apply()).toBe('applied');
  expect(await run(kernel.lab.loadBalancer, 'nft', ['list', 'tables'])).toBe('');
});

interface Held {
  readonly node: string;
  readonly connection: ProbeConnection;
}

async function openMany(family: IpFamily, count: number): Promise<readonly Held[]> {
  const opened = await Promise.all(Array.from({ length: count }, () => kernel.client.open(to(family, 'tcp'))));
  return opened.map(({ result, connection }) => {
    if (connection === undefined) throw new Error(`no connection: ${answerOf(result)}`);
    return { node: answerOf(result), connection };
  });
}

/** How the exchanges ended, each way once. */
async function exchangeAll(held: readonly Held[]): Promise<readonly string[]> {
  const results = await Promise.all(held.map(({ connection }) => connection.exchange('still there')));
  return [...new Set(results.map(({ status }) => status))];
}

/** ADDRESS PORT: ten datagrams of 6,000 bytes from ten ports; prints how many were answered. */
const largeDatagrams = String.raw`
use strict; use warnings; use Socket;
my ($address, $port) = @ARGV;
my ($af, $to) = $address =~ /:/ ? (AF_INET6, pack_sockaddr_in6($port, Socket::inet_pton(AF_INET6, $address))) : (AF_INET, pack_sockaddr_in($port, inet_aton($address)));
my $answered = 0;
for (1 .. 10) {
  socket(my $socket, $af, SOCK_DGRAM, 0) or die $!;
  connect $socket, $to or die $!;
  send $socket, 'x' x 6000, 0 or die $!;
  my $ready = ''; vec($ready, fileno($socket), 1) = 1;
  $answered++ if select($ready, undef, undef, 1) && defined recv $socket, my $data, 2000, 0;
}
print "$answered of 10\n";
`;

/** CLIENT CLIENT_PORT ADDRESS PORT: a router's error about a packet of a TCP connection, from ADDRESS to CLIENT. */
const packetTooBig = String.raw`
use strict; use warnings; use Socket;
my ($client, $client_port, $address, $port) = @ARGV;
sub checksum { my $sum = 0; $sum += $_ for unpack 'n*', $_[0]; $sum = ($sum >> 16) + ($sum & 0xffff) while $sum >> 16; return ~$sum & 0xffff }
my $tcp = pack 'nnN', $port, $client_port, 1;
if ($address =~ /:/) {
  my @ends = map { Socket::inet_pton(AF_INET6, $_) } $address, $client;
  my $error = pack('CCnN', 2, 0, 0, 1300) . pack('NnCC', 0x60000000, 1440, 6, 60) . $ends[0] . $ends[1] . $tcp;
  socket(my $socket, AF_INET6, SOCK_RAW, 58) or die $!;
  send $socket, $error, 0, pack_sockaddr_in6(0, $ends[0]) or die $!;
} else {
  my @ends = map { inet_aton($_) } $address, $client;
  my $error = pack('CCnnn', 3, 4, 0, 0, 1400) . pack('CCnnnCCn', 0x45, 0, 1500, 1, 0x4000, 60, 6, 0) . $ends[0] . $ends[1] . $tcp;
  substr $error, 2, 2, pack 'n', checksum($error);
  socket(my $socket, AF_INET, SOCK_RAW, 1) or die $!;
  send $socket, $error, 0, pack_sockaddr_in(0, $ends[0]) or die $!;
}
`;
