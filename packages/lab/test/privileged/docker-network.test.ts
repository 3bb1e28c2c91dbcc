import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { debianRoot } from '../../../../tools/debian/debian-root.ts';
import {
  createLab,
  createProber,
  type DockerEngine,
  dockerPackages,
  emptyImage,
  type JoinedNetwork,
  joinDockerNetwork,
  type Lab,
  type LabHost,
  machinePrograms,
  startDockerEngine,
} from '../../src/index.ts';

const { signal } = new AbortController();
const families = ['IPv4', 'IPv6'] as const;
let lab: Lab;
let engine: DockerEngine;

beforeAll(async () => {
  const programs = await debianRoot({ ...dockerPackages, signal });
  lab = await createLab({ name: 'joined', nodes: 1, ipFamilies: families }, signal);
  engine = await startDockerEngine({ lab, host: lab.loadBalancer, programs }, signal);
});

afterAll(async () => {
  await engine?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

/** Starts a container that answers on port 80 and returns its addresses. */
async function startServer(name: string, options: readonly string[]): Promise<Record<'IPv4' | 'IPv6', string>> {
  const serve = `process.on('SIGTERM', process.exit);
    require('http').createServer((q, r) => r.end('from ' + process.argv[1])).listen(80, '::')`;
  const command = [await emptyImage(engine), '/node', '-e', serve, name];
  const policy = ['--detach', '--restart', 'unless-stopped', '--name', name, '--network', 'kind'];
  const started = await engine.cli(['run', ...policy, ...options, ...machinePrograms, ...command]);
  expect(started).toMatchObject({ exitCode: 0, stderr: '' });
  const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{.GlobalIPv6Address}}{{end}}';
  const { stdout } = await engine.cli(['inspect', '--format', format, name]);
  const [IPv4 = '', IPv6 = ''] = stdout.trim().split(' ');
  return { IPv4, IPv6 };
}

async function expectAnswer(from: LabHost, address: string, answer: string): Promise<void> {
  await using prober = await createProber(from, signal);
  const probe = { protocol: 'http', address, port: 80, path: '/' } as const;
  await expect.poll(() => prober.probe(probe)).toMatchObject({ status: 'answered', body: answer });
}

/** Result of connecting to a port without a listener: `ECONNREFUSED` if the host answers. */
async function connectFrom(container: string, address: string): Promise<string> {
  const connect = `const socket = require('net').connect(9, '${address}').on('error', (error) => console.log(error.code));
    socket.setTimeout(1500, () => { console.log('timeout'); socket.destroy(); });`;
  return (await engine.cli(['exec', container, '/node', '-e', connect])).stdout.trim();
}

/** Routes and neighbours of each lab host. */
async function networkOf(hosts: readonly LabHost[]): Promise<string> {
  const shown = hosts.map(async (host) => {
    const parts = [
      ['-o', 'address'],
      ['-4', 'route'],
      ['-6', 'route'],
    ];
    const texts = await Promise.all(parts.map(async (args) => (await host.run('ip', args)).stdout));
    return [host.name, ...texts].join('\n').replaceAll(/\d+: |valid_lft \w+|preferred_lft \w+/g, '');
  });
  return (await Promise.all(shown)).join('\n');
}

describe('a Docker network joined to the lab', () => {
  let before: string;
  let network: JoinedNetwork;

  beforeAll(async () => {
    before = await networkOf(lab.hosts);
    network = await joinDockerNetwork({ lab, host: lab.loadBalancer, engine }, signal);
  });

  test('has the subnets of kind, and gives addresses that are not the hosts’', async () => {
    expect(network).toMatchObject({
      name: 'kind',
      subnets: { IPv4: '172.18.0.0/16', IPv6: 'fd00:172:18::/64' },
      gateways: lab.loadBalancer.addresses,
    });
    const addresses = await startServer('dynamic', []);
    expect(addresses.IPv4).toMatch(/^172\.18\.1\.\d+$/);
    expect(addresses.IPv6).toMatch(/^fd00:172:18:0:1::\d*$/);
  });

  test.each(families)(
    'has containers that the client, a node and the host reach over %s, also at a chosen address',
    async (family) => {
      const chosen = { IPv4: '172.18.255.7', IPv6: 'fd00:172:18::ff07' };
      if (family === 'IPv4') await startServer('chosen', ['--ip', chosen.IPv4, '--ip6', chosen.IPv6]);
      for (const host of [lab.client, ...lab.nodes, lab.loadBalancer]) {
        await expectAnswer(host, chosen[family], 'from chosen');
      }
    },
  );

  test.each(families)('has containers that reach a node and the client over %s as neighbours', async (family) => {
    for (const host of [lab.client, ...lab.nodes]) {
      const address = host.addresses[family] ?? '';
      const { stdout } = await engine.cli(['exec', 'dynamic', 'ip', 'route', 'get', address]);
      expect(stdout).toMatch(new RegExp(`^${address} (from :: )?dev eth0 `));
      expect(await connectFrom('dynamic', address)).toBe('ECONNREFUSED');
    }
  });

  test('publishes ports on the host', async () => {
    await startServer('published', ['--publish', '80:80']);
    for (const address of Object.values(lab.loadBalancer.addresses)) {
      await expectAnswer(lab.client, address, 'from published');
    }
  });

  test('knows no way to pods but through nodes', async () => {
    const pod = await lab.addPod(lab.nodes[0]!, 'pod');
    for (const family of families) {
      const address = pod.addresses[family] ?? '';
      expect(await connectFrom('dynamic', address)).toBe({ IPv4: 'ENETUNREACH', IPv6: 'timeout' }[family]);
      const route = ['route', 'replace', address, 'via', lab.nodes[0]!.addresses[family] ?? ''];
      expect(await engine.cli(['exec', '--privileged', 'dynamic', 'ip', ...route])).toMatchObject({ exitCode: 0 });
      expect(await connectFrom('dynamic', address)).toBe('ECONNREFUSED');
    }
    await lab.removePod(pod);
  });

  test.each([
    ['restarted', false],
    ['killed', true],
  ])('goes on with its containers when the engine is %s', async (_, isKilled) => {
    const { pid } = engine;
    await engine.restart({ isKilled }, signal);
    expect(engine.pid).not.toBe(pid);
    await expectAnswer(lab.client, '172.18.255.7', 'from chosen');
    await expectAnswer(lab.client, lab.loadBalancer.addresses.IPv6 ?? '', 'from published');
  });

  test('is taken back with containers on it, and everything is as it was', async () => {
    await network[Symbol.asyncDispose]();
    expect(await networkOf(lab.hosts)).toBe(before);
    expect((await engine.cli(['network', 'ls', '--format', '{{.Name}}'])).stdout.split('\n')).not.toContain('kind');
    expect(await engine.cli(['rm', '--force', 'dynamic', 'chosen', 'published'])).toMatchObject({ exitCode: 0 });
  });
});

test('a network whose subnet Docker chose: it refuses addresses, and neighbours are reachable', async () => {
  await using network = await joinDockerNetwork({ lab, host: lab.loadBalancer, engine, isAutomatic: true }, signal);
  expect(network).toMatchObject({ name: 'kind', subnets: { IPv4: '172.18.0.0/16' }, gateways: { IPv4: '172.18.0.1' } });
  const refused = await engine.cli([
    'run',
    '--rm',
    '--network',
    'kind',
    '--ip',
    '172.18.255.7',
    await emptyImage(engine),
    '/none',
  ]);
  expect(refused).toMatchObject({ stderr: expect.stringContaining('user configured subnets') as string });
  const { IPv4, IPv6 } = await startServer('automatic', []);
  expect(IPv4).toBe('172.18.0.2');
  for (const address of [IPv4, IPv6]) await expectAnswer(lab.client, address, 'from automatic');
});
