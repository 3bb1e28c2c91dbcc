import { readFileSync } from 'node:fs';
import { millis } from '@switchyard/core';
import { createProber, type LabProcess, type Prober, startEchoServer } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type ContainerPlan, createArguments, runArguments } from '../../../src/docker/container-arguments.ts';
import { containerName } from '../../../src/docker/container-names.ts';
import { DockerCli } from '../../../src/docker/docker-cli.ts';
import type { LoadBalancerSpec } from '../../../src/spec/load-balancer-spec.ts';
import {
  buildSiteImage,
  type DockerSite,
  type RuntimeUnderTest,
  siteImage,
  siteSpec,
  startDockerSite,
} from './docker-site.ts';

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
let site: DockerSite;
let one: RuntimeUnderTest;
let client: Prober;
let nodes: readonly LabProcess[];

beforeAll(async () => {
  site = stack.use(await startDockerSite('dkrun', signal));
  await buildSiteImage(site, signal);
  const ports = { http: [30080, 32080], udp: [30053], tcp: [30007] };
  nodes = site.lab.nodes.map((host) => startEchoServer(host, { pod: host.name, ...ports }));
  client = stack.use(await createProber(site.lab.client, signal));
  one = stack.use(site.newRuntime());
});

afterAll(() => stack.disposeAsync());

/** Waits until the load balancer answers on both of its addresses. */
async function untilServing({ addresses }: LoadBalancerSpec): Promise<void> {
  for (const address of addresses) {
    await expect
      .poll(() => client.probe({ protocol: 'http', address, port: 80 }), { interval: 20 })
      .toMatchObject({ status: 'answered', httpStatus: 200 });
  }
}

const nameOf = ({ id }: LoadBalancerSpec): string => containerName(id);

async function containers(): Promise<readonly string[]> {
  const names = await site.docker(
    'ps',
    '--all',
    '--filter',
    'label=dev.switchyard.lb.cluster',
    '--format',
    '{{.Names}}',
  );
  return names.split('\n').filter(Boolean).sort();
}

/** Result of `ensure` after the end of the container was reported. */
async function untilDisturbed(spec: LoadBalancerSpec, act: () => Promise<unknown>): Promise<void> {
  const before = one.disturbed.length;
  await act();
  await expect.poll(() => one.disturbed.slice(before), { interval: 20 }).toContainEqual([spec.id]);
}

describe('a load balancer', () => {
  const web = siteSpec('web', 1);
  const name = nameOf(web);
  /** Milliseconds that the engine needed for the first container: its speed on this machine. */
  let first = Infinity;

  test('gets addresses from the top end of the network, not those that others have', async () => {
    const source = await one.runtime.addressSource(signal);
    expect(source).toMatchObject({
      kind: 'pool',
      cidrs: expect.arrayContaining(['172.18.255.0/24', 'fd00:172:18:0:ffff:ffff:ffff:0/112']) as unknown,
      reserved: expect.arrayContaining(['172.18.0.1', '172.18.255.255']) as unknown,
    });
  });

  test('is a container with its addresses', async () => {
    const begin = performance.now();
    const outcome = await one.runtime.ensure(web, signal);
    first = performance.now() - begin;
    expect(outcome).toEqual({ status: 'applied', where: `container ${name}`, published: [] });
    await untilServing(web);
    expect(await one.runtime.list('c', signal)).toEqual([{ id: web.id, addresses: web.addresses }]);
    expect(await one.runtime.list('other', signal)).toEqual([]);
  });

  test('has a first process that is not root and has no right', async () => {
    const status = await site.docker('exec', name, 'cat', '/proc/1/status');
    expect(status).toMatch(/^Name:\s+haproxy$/m);
    expect(status).toMatch(/^Uid:\s+65532\s/m);
    for (const set of ['Inh', 'Prm', 'Eff', 'Amb']) expect(status).toMatch(new RegExp(`^Cap${set}:\\s+0+$`, 'm'));
    expect(status).toMatch(/^CapBnd:\s+0000000000001000$/m); // NET_ADMIN alone
  });

  test('that runs as wanted costs a look after it was listed, then nothing; and no change where the controller is new', async () => {
    await one.runtime.list('c', signal);
    expect(await one.runtime.ensure(web, signal)).toMatchObject({ status: 'unchanged' });
    const commands = vi.spyOn(DockerCli.prototype, 'try');
    expect(await one.runtime.ensure(web, signal)).toMatchObject({ status: 'unchanged' });
    expect(commands).not.toHaveBeenCalled();
    commands.mockRestore();
    await using other = site.newRuntime();
    expect(await other.runtime.list('c', signal)).toHaveLength(1);
    expect(await other.runtime.ensure(web, signal)).toMatchObject({ status: 'unchanged' });
  });

  test.each([
    ['killed', ['kill', name]],
    ['restarted by hand', ['restart', '--time', '0', name]],
    ['removed by hand', ['rm', '--force', name]],
  ])('%s is back within seconds with the same addresses', async (what, command) => {
    const begin = performance.now();
    await untilDisturbed(web, () => site.docker(...command));
    expect(await one.runtime.ensure(web, signal)).toMatchObject({ status: 'applied' });
    expect(performance.now() - begin).toBeLessThan(10_000 + 3 * first);
    await untilServing(web);
    const took = Math.round(performance.now() - begin);
    process.stdout.write(`${what}: serves again ${took} ms later; the first container took ${Math.round(first)} ms\n`);
    expect(await containers()).toEqual([name]);
  });

  test('gets a new container when its addresses change, and is told nothing of the old one', async () => {
    const before = one.disturbed.length;
    const moved = siteSpec('web', 2);
    expect(await one.runtime.ensure(moved, signal)).toMatchObject({ status: 'applied' });
    expect(await one.runtime.list('c', signal)).toEqual([{ id: web.id, addresses: moved.addresses }]);
    await untilServing(moved);
    const [old = ''] = web.addresses;
    expect(await client.probe({ protocol: 'connect', address: old, port: 80 })).not.toMatchObject({
      status: 'answered',
    });
    expect(await one.runtime.ensure(moved, signal)).toMatchObject({ status: 'unchanged' });
    expect(one.disturbed.slice(before)).toEqual([]);
  });

  test('is removed with all that belongs to it, and again without complaint', async () => {
    await one.runtime.remove(web.id, signal);
    expect(await containers()).toEqual([]);
    await one.runtime.remove(web.id, signal);
  });
});

describe('half-made by a controller that was killed', () => {
  const half = siteSpec('half', 10);
  const name = nameOf(half);
  const plan = async (): Promise<ContainerPlan> => ({
    id: half.id,
    network: 'kind',
    hasIpv6: true,
    interfaceSettings: 'sysctl',
    image: siteImage,
    imageId: await site.docker('image', 'inspect', '--format', '{{.Id}}', siteImage),
    addresses: half.addresses,
    publishOn: undefined,
    ports: [],
    isDiscovered: true,
  });

  test.each([
    ['made, not started', createArguments],
    ['started, without a configuration', runArguments],
  ])('%s: it is listed, and completed as it is', async (_, command) => {
    const id = await site.docker(...command(await plan(), new Set()));
    await using next = site.newRuntime();
    expect(await next.runtime.list('c', signal)).toEqual([{ id: half.id, addresses: half.addresses }]);
    expect(await next.runtime.ensure(half, signal)).toMatchObject({ status: 'applied' });
    expect(await site.docker('inspect', '--format', '{{.Id}}', name)).toBe(id);
    await untilServing(half);
    await next.runtime.remove(half.id, signal);
    expect(await containers()).toEqual([]);
  });

  test.each([100, 400])('cut off after %d ms: the next controller ends with one container', async (delay) => {
    await using next = site.newRuntime();
    await one.runtime.ensure(half, AbortSignal.timeout(delay)).catch(() => undefined);
    expect(await next.runtime.ensure(half, signal)).not.toMatchObject({ status: 'failed' });
    expect(await containers()).toEqual([name]);
    await next.runtime.remove(half.id, signal);
    expect(await containers()).toEqual([]);
  });

  test('and not wanted any more: it is removed', async () => {
    await site.docker(...createArguments(await plan(), new Set()));
    await one.runtime.remove(half.id, signal);
    expect(await containers()).toEqual([]);
  });

  test('two runtimes that make the same one end with one container, and both succeed', async () => {
    await using other = site.newRuntime();
    const both = await Promise.all([one, other].map(({ runtime }) => runtime.ensure(half, signal)));
    expect(both.map(({ status }) => status).sort()).toEqual(['applied', expect.stringMatching(/applied|unchanged/)]);
    expect(await containers()).toEqual([name]);
    await one.runtime.remove(half.id, signal);
  });
});

describe('what is missing is named, with what to do', () => {
  test('the image', async () => {
    await using other = site.newRuntime({ image: 'switchyard/load-balancer:nosuch' });
    expect(await other.runtime.ensure(siteSpec('x', 20), signal)).toEqual({
      status: 'failed',
      reason: 'ImageNotFound',
      message:
        'cannot look at image switchyard/load-balancer:nosuch: docker image inspect switchyard/load-balancer:nosuch: it exited with 1 and said: Error: No such image: switchyard/load-balancer:nosuch; pull or build the image, or name another one with --image',
    });
  });

  test('the network', async () => {
    await using other = site.newRuntime({ network: 'nosuch' });
    const message = expect.stringMatching(
      /No such network: nosuch; create a kind cluster, .* or name its network with --network/,
    );
    expect(await other.runtime.ensure(siteSpec('x', 20), signal)).toEqual({
      status: 'failed',
      reason: 'NetworkNotFound',
      message,
    });
    await expect(other.runtime.addressSource(signal)).rejects.toMatchObject({ code: 'docker.noSuchNetwork', message });
    expect(await containers()).toEqual([]);
  });

  test('the name, which somebody else has', async () => {
    const spec = siteSpec('x', 20);
    await site.docker('create', '--name', nameOf(spec), siteImage);
    expect(await one.runtime.ensure(spec, signal)).toMatchObject({ status: 'failed', reason: 'ContainerNameTaken' });
    await one.runtime.remove(spec.id, signal);
    expect(await site.docker('inspect', '--format', '{{.State.Status}}', nameOf(spec))).toBe('created');
    await site.docker('rm', nameOf(spec));
  });

  test('the pool, outside of the network', async () => {
    await using other = site.newRuntime({ pool: ['10.0.0.0/24' as never] });
    await expect(other.runtime.addressSource(signal)).rejects.toThrow('--pool: 10.0.0.0/24 is not inside network kind');
  });
});

test('what load balancers of whatever cluster have is known to all controllers on the network', async () => {
  const spec = siteSpec('web', 30);
  await one.runtime.ensure(spec, signal);
  await using other = site.newRuntime();
  for (const { runtime } of [one, other]) {
    const held = [{ id: spec.id, addresses: spec.addresses }];
    expect(await runtime.addressSource(signal)).toMatchObject({ held: expect.arrayContaining(held) as unknown });
  }
  await one.runtime.remove(spec.id, signal);
});

test('ports are published under the same number where it is free, and a new container comes only when they change', async () => {
  await using publishing = site.newRuntime({ publishOn: '127.0.0.1' });
  const { runtime } = publishing;
  const first = siteSpec('first', 40, [{ port: 8080 }]);
  const second = siteSpec('second', 41, [{ port: 8080 }, { port: 8081 }]);
  await using host = await createProber(site.lab.loadBalancer, signal);
  const publishedBy = async (spec: LoadBalancerSpec): Promise<unknown> => {
    const outcome = await runtime.ensure(spec, signal);
    return outcome.status === 'failed' ? outcome : outcome.published;
  };
  const idOf = (spec: LoadBalancerSpec): Promise<string> => site.docker('inspect', '--format', '{{.Id}}', nameOf(spec));
  expect(await publishedBy(first)).toEqual(['127.0.0.1:8080 -> 8080/TCP']);
  expect(await publishedBy(second)).toEqual([
    expect.stringMatching(/^127\.0\.0\.1:(?!8080)\d+ -> 8080\/TCP$/),
    '127.0.0.1:8081 -> 8081/TCP',
  ]);
  const before = await idOf(first);
  const published = { protocol: 'http', address: '127.0.0.1', port: 8080 } as const;
  await expect.poll(() => host.probe(published)).toMatchObject({ httpStatus: 200 });
  expect(await publishedBy({ ...first, isWeighted: true })).toEqual(['127.0.0.1:8080 -> 8080/TCP']);
  expect(await idOf(first)).toBe(before);
  expect(await publishedBy(siteSpec('first', 40, [{ port: 8082 }]))).toEqual(['127.0.0.1:8082 -> 8082/TCP']);
  expect(await idOf(first)).not.toBe(before);
  for (const { id } of [first, second]) await runtime.remove(id, signal);
});

test.each([
  ['gently', false],
  ['by force', true],
])('an engine that was restarted %s: all are back with their addresses, without a duplicate', async (_, isKilled) => {
  const specs = [siteSpec('a', 50), siteSpec('b', 51)];
  await Promise.all(specs.map((spec) => one.runtime.ensure(spec, signal)));
  const before = one.disturbed.length;
  await site.engine.restart({ isKilled }, signal);
  await expect.poll(() => one.disturbed.slice(before)).toContain('all');
  for (const spec of specs) expect(await one.runtime.ensure(spec, signal)).toMatchObject({ status: 'applied' });
  expect(await containers()).toEqual(specs.map(nameOf).sort());
  for (const spec of specs) {
    await untilServing(spec);
    await one.runtime.remove(spec.id, signal);
  }
});

describe('a load balancer that is removed', () => {
  const echo = siteSpec('echo', 60, [{ port: 7, targetPort: 30007 }]);
  const [address = ''] = echo.addresses;
  const request = { protocol: 'tcp', address, port: 7 } as const;

  test('lets connections finish, accepts no new ones, and ends after ten seconds at the latest', async () => {
    await one.runtime.ensure(echo, signal);
    await expect.poll(() => client.probe(request)).toMatchObject({ status: 'answered' });
    const { connection } = await client.open(request);
    const begin = performance.now();
    const removal = one.runtime.remove(echo.id, signal);
    await expect.poll(() => client.probe(request)).toMatchObject({ status: 'refused' });
    expect(await connection?.exchange('still there')).toMatchObject({ status: 'echoed' });
    await removal;
    expect(performance.now() - begin).toBeGreaterThan(9000);
    expect(performance.now() - begin).toBeLessThan(20_000);
    expect(await connection?.exchange('gone')).not.toMatchObject({ status: 'echoed' });
  });

  test('goes at once where there is none', async () => {
    await one.runtime.ensure(echo, signal);
    const begin = performance.now();
    await one.runtime.remove(echo.id, signal);
    expect(performance.now() - begin).toBeLessThan(9000);
  });
});

test('the transparent path leaves clients their address, over the bridge of a real engine, with the rights a container has', async () => {
  const direct = { ...siteSpec('direct', 71, [{ port: 80, targetPort: 80 }]), path: 'transparent' } as const;
  for (const node of site.lab.nodes) {
    // As the node's proxy does for a load-balancer IP of mode VIP.
    const rules = direct.addresses.map(
      (address) => `${address.includes(':') ? 'ip6' : 'ip'} daddr ${address} tcp dport 80 redirect to :30080`,
    );
    const chain = [
      'table inet proxy {',
      'chain answer { type nat hook prerouting priority -100;',
      ...rules,
      '}',
      '}\n',
    ];
    expect(await node.run('nft', ['-f', '-'], { stdin: chain.join('\n') })).toMatchObject({ exitCode: 0 });
  }
  await one.runtime.ensure(direct, signal);
  for (const address of direct.addresses) {
    const seenSource = site.lab.client.addresses[address.includes(':') ? 'IPv6' : 'IPv4'];
    await expect
      .poll(() => client.probe({ protocol: 'http', address, port: 80 }))
      .toMatchObject({ status: 'answered', seenSource });
  }
  await one.runtime.remove(direct.id, signal);
});

test('UDP follows the health of nodes, which is told', async () => {
  const dns = siteSpec('dns', 70, [{ port: 53, targetPort: 30053, protocol: 'UDP' }]);
  const profile = { ...dns.profile, interval: millis(200), downInterval: millis(200) };
  await one.runtime.ensure({ ...dns, profile }, signal);
  const [address = ''] = dns.addresses;
  const answersOf = async (): Promise<readonly (string | undefined)[]> => {
    const request = { protocol: 'udp', address, port: 53, timeout: 300 } as const;
    const results = await Promise.all(Array.from({ length: 12 }, () => client.probe(request)));
    return [...new Set(results.map((one) => (one.status === 'answered' ? one.by : one.status)))].sort();
  };
  await expect.poll(answersOf).toEqual(['node1', 'node2']);
  await nodes[0]!.stop(millis(0));
  await expect.poll(answersOf).toEqual(['node2']);
  const change = { id: dns.id, port: 53, ipFamily: 'IPv4', target: 'node1', isUp: false };
  expect(one.changes).toContainEqual({ ...change, time: expect.any(Number), reason: expect.any(String) });
  await one.runtime.remove(dns.id, signal);
});

// Fifty, with their Services, are made in docker-e2e.
test('a dozen at once', async () => {
  const specs = Array.from({ length: 12 }, (_, index) => siteSpec(`many${index}`, 100 + index));
  const begin = performance.now();
  const outcomes = await Promise.all(specs.map((spec) => one.runtime.ensure(spec, signal)));
  const took = performance.now() - begin;
  expect(outcomes.map(({ status }) => status)).toEqual(specs.map(() => 'applied'));
  expect(await one.runtime.list('c', signal)).toHaveLength(12);
  const pids = (await Promise.all(specs.map((spec) => site.engine.pidsOf(nameOf(spec))))).flat();
  const resident = pids.reduce(
    (sum, pid) => sum + Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]),
    0,
  );
  process.stdout.write(
    `12 load balancers in ${(took / 1000).toFixed(1)} s, ${(resident / 12 / 1024).toFixed(1)} MB each\n`,
  );
  expect(took).toBeLessThan(60_000);
});
