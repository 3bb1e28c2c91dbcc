import { ipFamilies, millis, parseIp, systemClock, type IpFamily } from '@switchyard/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createLab,
  createProber,
  type Lab,
  type LabHost,
  type LabPod,
  type Prober,
  type ProbeRequest,
  type ProbeResult,
  startEchoServer,
} from '../../src/index.ts';

const { signal } = new AbortController();
const [httpPort, tcpPort, udpPort] = [8080, 9090, 9091];
let lab: Lab;
let pods: readonly LabPod[];
const probers = new Map<string, Prober>();

beforeAll(async () => {
  lab = await createLab({ name: 'labnet', nodes: 2, ipFamilies }, signal);
  pods = [await lab.addPod(lab.nodes[0]!, 'pod1'), await lab.addPod(lab.nodes[1]!, 'pod2')];
  const everyone: readonly LabHost[] = [...lab.hosts, ...pods];
  for (const host of everyone) {
    const node = pods.find((pod) => pod === host)?.node.name ?? host.name;
    startEchoServer(host, { pod: host.name, node, http: [httpPort], tcp: [tcpPort], udp: [udpPort] });
  }
  await Promise.all(everyone.map(async (host) => probers.set(host.name, await createProber(host, signal))));
  for (const host of everyone) await answers(host.name, { protocol: 'http', ...target(host.name, 'IPv4', httpPort) });
});

afterAll(async () => {
  await lab?.[Symbol.asyncDispose]();
});

/** Repeats until an answer comes: the servers need time to start. */
async function answers(from: string, request: ProbeRequest): Promise<ProbeResult> {
  for (;;) {
    const result = await probers.get(from)!.probe(request);
    if (result.status === 'answered') return result;
    await systemClock.sleep(millis(50), signal);
  }
}

function host(name: string): LabHost {
  return [...lab.hosts, ...pods].find((candidate) => candidate.name === name)!;
}

function target(name: string, family: IpFamily, port: number): { address: string; port: number } {
  return { address: host(name).addresses[family]!, port };
}

const reachable = [
  ['client', 'node1'],
  ['client', 'lb'],
  ['client', 'api'],
  ['lb', 'node2'],
  ['lb', 'pod1'],
  ['api', 'pod2'],
  ['node1', 'node2'],
  ['node1', 'client'],
  ['node1', 'pod1'],
  ['node1', 'pod2'],
  ['pod1', 'pod2'],
  ['pod1', 'node1'],
  ['pod1', 'node2'],
  ['pod1', 'api'],
  ['pod1', 'pod1'],
] as const;

describe.each(ipFamilies)('%s', (family) => {
  test("node and pod need no entry of the machine's table of learnt neighbours to reach each other", async () => {
    await answers('node1', { protocol: 'tcp', ...target('pod1', family, tcpPort) });
    await answers('pod1', { protocol: 'tcp', ...target('node1', family, tcpPort) });
    const learnt = async (name: string, device: string): Promise<string> => {
      const flag = family === 'IPv4' ? '-4' : '-6';
      const { stdout } = await host(name).run('ip', [flag, 'neighbour', 'show', 'nud', 'all', 'dev', device]);
      const others = /PERMANENT|NOARP| lladdr 33:33:/; // groups need none either
      return stdout
        .split('\n')
        .filter((line) => line !== '' && !others.test(line))
        .join('\n');
    };
    expect([await learnt('node1', 'pod1'), await learnt('pod1', 'eth0')]).toEqual(['', '']);
  });

  test.each(reachable)('%s reaches %s, which sees its address, by HTTP, TCP and UDP', async (from, to) => {
    const requests: readonly ProbeRequest[] = [
      { protocol: 'http', ...target(to, family, httpPort) },
      { protocol: 'tcp', ...target(to, family, tcpPort) },
      { protocol: 'udp', ...target(to, family, udpPort) },
    ];
    for (const request of requests) {
      const result = await probers.get(from)!.probe(request);
      expect(result).toMatchObject({ status: 'answered', by: to, seenSource: host(from).addresses[family] });
    }
  });

  test.each(['pod1', 'pod2'])('the client has no route to %s', async (pod) => {
    const result = await probers.get('client')!.probe({ protocol: 'tcp', ...target(pod, family, tcpPort) });
    expect(result).toMatchObject({ status: 'unreachable', code: 'ENETUNREACH' });
  });

  test.each(['client', 'node1', 'pod1'])('%s gets no answer from a service address without a proxy', async (from) => {
    const address = family === 'IPv4' ? '10.96.0.1' : 'fd00:10:96::1';
    const result = await probers.get(from)!.probe({ protocol: 'tcp', address, port: 443 });
    expect(result.status).toBe('unreachable');
  });

  test('a closed port refuses TCP and UDP', async () => {
    for (const protocol of ['tcp', 'udp', 'http'] as const) {
      const result = await probers.get('client')!.probe({ protocol, ...target('node1', family, 1) });
      expect(result.status).toBe('refused');
    }
  });

  test('an address of a pod CIDR without a pod stays silent', async () => {
    const address = family === 'IPv4' ? '10.244.2.250' : 'fd00:10:244:2::250';
    const result = await probers.get('pod1')!.probe({ protocol: 'tcp', address, port: 80, timeout: 300 });
    expect(result).toMatchObject({ status: 'timeout' });
  });

  test('routeToNode brings packets for a load-balancer address to the node', async () => {
    const address = family === 'IPv4' ? '198.51.100.7' : '2001:db8::7';
    const request: ProbeRequest = { protocol: 'http', address, port: httpPort };
    expect((await probers.get('client')!.probe(request)).status).toBe('unreachable');
    await lab.nodes[1]!.run('ip', ['addr', 'add', address, 'dev', 'lo']);
    await lab.routeToNode([parseIp(address)], lab.nodes[1]!);
    expect(await probers.get('client')!.probe(request)).toMatchObject({ status: 'answered', by: 'node2' });
  });
});

test('connect only opens a connection', async () => {
  const probe = (port: number): Promise<ProbeResult> =>
    probers.get('client')!.probe({ protocol: 'connect', ...target('node1', 'IPv6', port) });
  expect(await probe(httpPort)).toMatchObject({ status: 'answered', by: undefined });
  expect(await probe(1)).toMatchObject({ status: 'refused' });
});

test('a probe from a given source address and port is seen as such', async () => {
  await lab.client.run('ip', ['addr', 'add', '172.18.0.101/24', 'dev', 'eth0']);
  const result = await probers.get('client')!.probe({
    protocol: 'udp',
    ...target('node1', 'IPv4', udpPort),
    source: '172.18.0.101',
    sourcePort: 4242,
  });
  expect(result).toMatchObject({ status: 'answered', seenSource: '172.18.0.101', seenSourcePort: 4242 });
});

test('UDP probes of a host have ports of their own, one after another', async () => {
  const request = { protocol: 'udp', ...target('node1', 'IPv4', udpPort) } as const;
  const ports: number[] = [];
  for (let round = 0; round < 4; round++) {
    const result = await probers.get('client')!.probe(request);
    ports.push(result.status === 'answered' ? Number(result.seenSourcePort) : Number.NaN);
  }
  const [first = Number.NaN] = ports;
  expect(ports).toEqual([0, 1, 2, 3].map((index) => 12_000 + ((first - 12_000 + index) % 18_000)));
});

test('a kept connection echoes, survives other probes, and distinguishes timeout, reset and close', async () => {
  const open = { protocol: 'tcp', ...target('node1', 'IPv4', tcpPort) } as const;
  const prober = probers.get('client')!;
  const { result, connection } = await prober.open(open);
  expect(result).toMatchObject({ status: 'answered', by: 'node1' });
  expect(await connection!.exchange('one')).toEqual({ status: 'echoed' });
  await prober.probe(open);
  expect(await connection!.exchange('two')).toEqual({ status: 'echoed' });
  await lab.nodes[0]!.run('ip', ['route', 'add', 'blackhole', '172.18.0.100/32']);
  expect(await connection!.exchange('three', 200)).toEqual({ status: 'timeout' });
  await lab.nodes[0]!.run('ip', ['route', 'del', 'blackhole', '172.18.0.100/32']);
  await connection!.close();
  expect(await connection!.exchange('four')).toEqual({ status: 'closed' });

  const server = startEchoServer(lab.loadBalancer, { pod: 'short', tcp: [9999] });
  const toServer = { protocol: 'tcp', ...target('lb', 'IPv4', 9999) } as const;
  await answers('client', toServer);
  const short = await prober.open(toServer);
  await server.stop(millis(0));
  expect(['closed', 'reset']).toContain((await short.connection!.exchange('gone')).status);
  expect(await prober.open(toServer)).toMatchObject({ result: { status: 'refused' }, connection: undefined });
});

test('a connected UDP socket asks from one port, outlives a refusal and a silence, and is refused without a listener', async () => {
  const prober = probers.get('client')!;
  const socket = await prober.connectUdp({ protocol: 'udp', ...target('node1', 'IPv6', udpPort), sourcePort: 4343 });
  const answer = { status: 'answered', by: 'node1', seenSourcePort: 4343 };
  expect(await socket.ask()).toMatchObject(answer);
  expect(await socket.ask()).toMatchObject(answer);
  await lab.nodes[0]!.run('ip', ['-6', 'route', 'add', 'blackhole', 'fd00:172:18::100/128']);
  expect(await socket.ask(200)).toMatchObject({ status: 'timeout' });
  await lab.nodes[0]!.run('ip', ['-6', 'route', 'del', 'blackhole', 'fd00:172:18::100/128']);
  expect(await socket.ask()).toMatchObject(answer);
  await socket.close();
  expect(await socket.ask()).toMatchObject({ status: 'unreachable', code: 'EBADF' });
  const nobody = await prober.connectUdp({ protocol: 'udp', ...target('node1', 'IPv4', 1) });
  expect(await nobody.ask()).toMatchObject({ status: 'refused' });
  expect(await nobody.ask()).toMatchObject({ status: 'refused' });
  await nobody.close();
});

test('a prober makes 200 attempts at once within 2 s', async () => {
  const request: ProbeRequest = { protocol: 'tcp', ...target('node1', 'IPv4', tcpPort) };
  const started = performance.now();
  const results = await Promise.all(Array.from({ length: 200 }, () => probers.get('client')!.probe(request)));
  expect(results.every((result) => result.status === 'answered')).toBe(true);
  expect(performance.now() - started).toBeLessThan(2000);
});
