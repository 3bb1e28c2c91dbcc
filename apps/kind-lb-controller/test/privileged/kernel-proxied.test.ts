import {
  ConfigError,
  type IpAddress,
  type IpFamily,
  ipFamilies,
  noopLogger,
  parseCidr,
  parseIp,
  seconds,
  systemClock,
} from '@switchyard/core';
import { createCommandRunner } from '@switchyard/host';
import { connectWhile, type LabPod, type ProbeRequest, startEchoServer, startSctpServers } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newInterfaceAddresses } from '../../src/kernel/interface-addresses.ts';
import { type KernelForwarderOptions, newKernelForwarder } from '../../src/kernel/kernel-forwarder.ts';
import { newTargetRoutes } from '../../src/kernel/target-routes.ts';
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
const udp = (family: IpFamily, changes: Partial<ProbeRequest> = {}): ProbeRequest => ({
  protocol: 'udp',
  address: vip[family],
  port: 53,
  timeout: 500,
  ...changes,
});
const dns = (changes: Partial<LoadBalancerSpec> = {}, draining?: string): LoadBalancerSpec =>
  specWith([portOn(53, 'UDP', targetsOf(kernel.lab.nodes, echoPort, draining))], changes);
const bothNodes = new Set(['node1', 'node2']);

beforeAll(async () => {
  kernel = await createKernelLab('lbkern1', 2);
});
afterAll(() => kernel?.[Symbol.asyncDispose]());

const forwarderWith = (changes: Partial<KernelForwarderOptions>): ReturnType<typeof newKernelForwarder> =>
  newKernelForwarder({
    runner: createCommandRunner(),
    netns: kernel.lab.loadBalancer.namespace,
    interfaceName: 'eth0',
    forwarding: 'check',
    clock: systemClock,
    logger: noopLogger,
    ...changes,
  });

describe('before anything is written', () => {
  test('a namespace that does not forward is an error that says what to switch on', async () => {
    await run(kernel.lab.loadBalancer, 'tee', ['/proc/sys/net/ipv4/ip_forward'], '0');
    await using forwarder = forwarderWith({});
    const request = { specs: [dns()], health: kernel.health, ownAddresses: [] };
    await expect(forwarder.apply(request, signal)).rejects.toThrow(
      'UDP and SCTP over IPv4 need net.ipv4.ip_forward, which is off; start the container with --sysctl net.ipv4.ip_forward=1',
    );
  });

  test("the machine's own namespace is refused, and not looked into without need", async () => {
    await using forwarder = forwarderWith({ netns: undefined, forwarding: 'set' });
    const refused = forwarder.apply({ specs: [dns()], health: kernel.health, ownAddresses: [] }, signal);
    await expect(refused).rejects.toThrow(ConfigError);
    await expect(refused).rejects.toThrow("would change the machine's own packet filter");
    const nothing = { specs: [], health: kernel.health, ownAddresses: [] };
    expect(await forwarder.apply(nothing, signal)).toBe('unchanged');
  });
});

describe.each(ipFamilies)('%s', (family) => {
  test("UDP reaches all targets, with the load balancer's own address", async () => {
    await kernel.apply(dns());
    expect(new Set(await answersOf(kernel.client, udp(family), 20))).toEqual(bothNodes);
    expect(await kernel.client.probe(udp(family))).toMatchObject({
      status: 'answered',
      seenSource: kernel.lab.loadBalancer.addresses[family],
    });
  });

  test('source ranges drop other clients', async () => {
    const outside = (['192.0.2.0/24', '2001:db8::/32'] as const).map(parseCidr);
    const inside = (['172.18.0.0/24', 'fd00:172:18::/64'] as const).map(parseCidr);
    await kernel.apply(dns({ sourceRanges: outside }));
    expect(answerOf(await kernel.client.probe(udp(family)))).toBe('timeout');
    await kernel.apply(dns({ sourceRanges: [...outside, ...inside] }));
    expect(bothNodes).toContain(answerOf(await kernel.client.probe(udp(family))));
  });

  test('with ClientIP affinity all flows of a client go to one target, and to another one when that is DOWN', async () => {
    const spec = dns({ sessionAffinity: { kind: 'clientIP', timeout: seconds(60) } });
    await kernel.apply(spec);
    // One first: of flows that begin in the same instant on two processors neither knows of the other, as with kube-proxy.
    const chosen = [answerOf(await kernel.client.probe(udp(family)))];
    expect(new Set(await answersOf(kernel.client, udp(family), 12))).toEqual(new Set(chosen));
    kernel.up = kernel.up.filter((name) => name !== chosen[0]);
    await kernel.apply(spec);
    const next = answerOf(await kernel.client.probe(udp(family)));
    const other = new Set([next, ...(await answersOf(kernel.client, udp(family), 12))]);
    expect([...other]).toEqual([...bothNodes].filter((name) => name !== chosen[0]));
    kernel.up = [...bothNodes];
  });

  test('a flow stays while its target drains, over a restart too, and moves at once when it goes DOWN', async () => {
    await kernel.apply(dns());
    const flow = udp(family, { sourcePort: 42_000 });
    const before = answerOf(await kernel.client.probe(flow));
    expect(bothNodes).toContain(before);
    expect(await kernel.apply(dns({}, before))).toBe('applied');
    expect(answerOf(await kernel.client.probe(flow))).toBe(before);
    expect(await answersOf(kernel.client, udp(family), 8)).not.toContain(before);
    expect(await kernel.apply(dns({}, before))).toBe('unchanged'); // another forwarder, which found all there
    expect(answerOf(await kernel.client.probe(flow))).toBe(before);
    kernel.up = kernel.up.filter((name) => name !== before);
    expect(await kernel.apply(dns({}, before))).toBe('applied');
    expect([...bothNodes].filter((name) => name !== before)).toEqual([answerOf(await kernel.client.probe(flow))]);
    kernel.up = [...bothNodes];
  });

  test('nobody UP: clients are refused, and a flow that was refused is answered once somebody is', async () => {
    kernel.up = [];
    await kernel.apply(dns());
    const flow = udp(family, { sourcePort: 42_001, timeout: 1500 });
    expect(answerOf(await kernel.client.probe(flow))).toBe('refused');
    kernel.up = ['node2'];
    await kernel.apply(dns());
    expect(answerOf(await kernel.client.probe(flow))).toBe('node2');
    kernel.up = [...bothNodes];
  });
});

test('no attempt is lost while targets drain, go DOWN and serve on, and come back', async () => {
  await kernel.apply(dns());
  const requests = ipFamilies.map((family) => udp(family, { timeout: 1500 }));
  const { count, failed } = await connectWhile({ prober: kernel.client, requests, lines: 4 }, async () => {
    for (const { name } of kernel.lab.nodes) {
      await kernel.apply(dns({}, name));
      kernel.up = kernel.up.filter((one) => one !== name);
      await kernel.apply(dns());
      kernel.up = [...bothNodes];
      await kernel.apply(dns());
    }
  });
  expect(failed).toEqual([]);
  expect(count).toBeGreaterThan(100);
});

test('SCTP is forwarded like UDP', async () => {
  const { lab } = kernel;
  for (const node of lab.nodes) await startSctpServers(node, node.name, signal);
  await kernel.apply(specWith([portOn(99, 'SCTP', targetsOf(lab.nodes, 3868))]));
  for (const family of ipFamilies) {
    const source = lab.client.addresses[family] ?? '';
    const results = await kernel.client.sctp({ source, address: vip[family], port: 99, count: 12 });
    expect(new Set(results.map(answerOf))).toEqual(bothNodes);
    expect(results[0]).toMatchObject({ seenSource: lab.loadBalancer.addresses[family] });
  }
});

test('published ports answer on own addresses too, and only while asked for', async () => {
  const own = kernel.lab.loadBalancer.addresses.IPv4 as IpAddress;
  await using forwarder = kernel.openForwarder();
  const request = { specs: [dns()], health: kernel.health, ownAddresses: [own] };
  await forwarder.apply(request, signal);
  const attempt = udp('IPv4', { address: own, timeout: 1500 });
  expect(bothNodes).toContain(answerOf(await kernel.client.probe(attempt)));
  await forwarder.apply({ ...request, ownAddresses: [] }, signal);
  expect(answerOf(await kernel.client.probe(attempt))).toBe('refused');
});

describe('targets that are pods', () => {
  let pod: LabPod;
  const listed = async (): Promise<string> =>
    (await run(kernel.lab.loadBalancer, 'ip', ['-4', 'route'])) +
    (await run(kernel.lab.loadBalancer, 'ip', ['-6', 'route']));

  test('are reached by routes through their nodes, which come and go', async () => {
    const { lab } = kernel;
    const [node] = lab.nodes;
    pod = await lab.addPod(node!, 'near');
    startEchoServer(pod, { pod: 'near', udp: [echoPort] });
    const routes = newTargetRoutes({
      runner: createCommandRunner(),
      netns: lab.loadBalancer.namespace,
      interfaceName: 'eth0',
    });
    const wanted = ipFamilies.map((family) => ({
      destination: parseCidr(node!.podCidrs[family] ?? ''),
      via: parseIp(node!.addresses[family] ?? ''),
    }));
    await run(lab.loadBalancer, 'ip', ['-4', 'route', 'flush', '10.244.1.0/24']);
    await run(lab.loadBalancer, 'ip', ['-6', 'route', 'flush', 'fd00:10:244:1::/64']);
    expect(await routes.apply(wanted, signal)).toBe('applied');
    expect(await routes.apply(wanted, signal)).toBe('unchanged');
    kernel.up = ['near'];
    await kernel.apply(specWith([portOn(53, 'UDP', targetsOf([pod], echoPort))]));
    for (const family of ipFamilies) {
      const awaited = await kernel.client.awaitAnswer(udp(family), { by: 'near', interval: 20, timeout: 3000 });
      expect(answerOf(awaited.result)).toBe('near');
    }
    const [first, second] = lab.nodes;
    const moved = wanted.map((route, index) => ({
      ...route,
      via: parseIp(second!.addresses[ipFamilies[index]!] ?? ''),
    }));
    expect(await routes.apply(moved, signal)).toBe('applied');
    expect(await listed()).toMatch(new RegExp(`10.244.1.0/24 via ${second!.addresses.IPv4}`));
    expect(await listed()).not.toContain(`via ${first!.addresses.IPv6} `);
    expect(await routes.apply([], signal)).toBe('applied');
    expect(await listed()).not.toMatch(/10\.244\.1\.0|fd00:10:244:1:/);
    kernel.up = [...bothNodes];
  });
});

test('an address that moves here is known to neighbours at once', async () => {
  const { lab } = kernel;
  const moving = ipFamilies.map((family) => parseIp(family === 'IPv4' ? '172.18.0.201' : 'fd00:172:18::201'));
  const on = (netns: string): ReturnType<typeof newInterfaceAddresses> =>
    newInterfaceAddresses({ runner: createCommandRunner(), interfaceName: 'eth0', netns, pool: 'everyHostAddress' });
  const known = async (address: IpAddress): Promise<string | undefined> =>
    /lladdr (\S+)/.exec(await run(lab.client, 'ip', ['neigh', 'show', address]))?.[1];
  const hardware = async (host: (typeof lab)['client']): Promise<string | undefined> =>
    /ether (\S+)/.exec(await run(host, 'ip', ['link', 'show', 'eth0']))?.[1];
  const [node] = lab.nodes;
  const [there, here] = [on(node!.namespace), on(lab.loadBalancer.namespace)];
  await there.add(moving, signal);
  for (const address of moving) {
    expect(answerOf(await kernel.client.probe({ protocol: 'tcp', address, port: echoPort }))).toBe('node1');
    expect(await known(address)).toBe(await hardware(node!));
  }
  await there.removeOthers([], signal);
  await here.add([...ipFamilies.map((family) => vip[family]), ...moving], signal);
  for (const address of moving) await expect.poll(() => known(address)).toBe(await hardware(lab.loadBalancer));
  await here.removeOthers(
    ipFamilies.map((family) => vip[family]),
    signal,
  );
  const left = await run(lab.loadBalancer, 'ip', ['-o', 'addr', 'show', 'dev', 'eth0']);
  expect(left).not.toContain('172.18.0.201');
  expect(left).toContain(`${lab.loadBalancer.addresses.IPv4}/24`);
});

test('without ports of UDP and SCTP nothing of ours stays in the kernel', async () => {
  await kernel.apply(dns());
  expect(await kernel.apply(specWith([portOn(80, 'TCP', targetsOf(kernel.lab.nodes, echoPort))]))).toBe('applied');
  expect(await run(kernel.lab.loadBalancer, 'nft', ['list', 'tables'])).toBe('');
  expect(await kernel.apply()).toBe('unchanged');
});
