import { createHash } from 'node:crypto';
import { millis, systemClock } from '@switchyard/core';
import {
  createLab,
  createProber,
  type DockerEngine,
  dockerPackages,
  type Lab,
  startDockerEngine,
  trafficPodArguments,
  trafficTokenHeader,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { debianRoot, machineArchitecture } from '../../../../tools/debian/debian-root.ts';
import { buildImage, buildLocalBase } from '../../../../tools/images/build-image.ts';
import { type BuiltImage, describeImage } from '../../../../tools/images/docker.ts';
import { podManifest } from '../../src/cluster/start-pods.ts';

// The production Dockerfile, built by a real Docker Engine on a base made of this machine's Debian packages.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const token = 'for this test';
const tokenDigest = createHash('sha256').update(token).digest('hex');
let lab: Lab;
let engine: DockerEngine;
let image: BuiltImage;

beforeAll(async () => {
  const programs = await debianRoot({ ...dockerPackages, signal });
  lab = stack.use(await createLab({ name: 'confimg', nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal));
  engine = stack.use(await startDockerEngine({ lab, host: lab.nodes[0]!, programs }, signal));
  const common = { architecture: machineArchitecture(), docker: engine.command, signal };
  const { tag: base } = await buildLocalBase({ ...common, tag: 'base:test' });
  image = await buildImage({ ...common, base, image: 'conformance', tag: 'conformance:test' });
});

afterAll(() => stack.disposeAsync());

test('the image is the base, Node and the program, and no larger than that', () => {
  process.stdout.write(`${describeImage(image)}\n`);
  expect(image.layers.map(({ name }) => name)).toEqual(['base', 'node', 'pod']);
  expect(image.size).toBeLessThan(145e6);
});

test('as its pod, without a right, it answers and sends on the network of its host, and ends on SIGTERM', async () => {
  const plan = { name: 'node', node: 'node1', isOnHostNetwork: true, port: 21_000 };
  const settings = { run: 'r', namespace: 'n', image: image.tag, command: undefined, tokenDigest };
  const [container] = podManifest(plan, settings).spec?.containers ?? [];
  expect(container?.args).toEqual(trafficPodArguments({ pod: 'node', node: 'node1', port: 21_000, tokenDigest }));
  const rights = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges'];
  const started = await engine.cli([
    'run',
    '-d',
    '--name=pod',
    '--network=host',
    ...rights,
    image.tag,
    ...(container?.args ?? []),
  ]);
  expect(started).toMatchObject({ exitCode: 0 });
  await using prober = await createProber(lab.client, signal);
  const address = lab.nodes[0]!.addresses.IPv4!;
  await expect
    .poll(async () => (await prober.probe({ protocol: 'connect', address, port: 21_000 })).status)
    .toBe('answered');
  const call = async (name: string, body: unknown): Promise<unknown> => {
    const args = [
      '-sS',
      '-H',
      `${trafficTokenHeader}: ${token}`,
      '-d',
      JSON.stringify(body),
      `http://${address}:21000/${name}`,
    ];
    return JSON.parse((await lab.client.run('curl', args)).stdout);
  };
  expect(await call('listen', { http: [], tcp: [8080], udp: [8080] })).toEqual({ failed: [] });
  for (const protocol of ['tcp', 'udp'] as const) {
    expect(await prober.probe({ protocol, address, port: 8080 })).toMatchObject({ status: 'answered', by: 'node' });
    const probes = [{ protocol, address, port: 8080, isFromFreshPort: true }];
    expect(await call('probe', { probes })).toMatchObject({ results: [{ status: 'answered', by: 'node' }] });
  }
  const before = systemClock.monotonic();
  await engine.cli(['stop', '--time=10', 'pod']);
  expect(systemClock.monotonic() - before).toBeLessThan(millis(8_000));
  expect((await engine.cli(['inspect', '--format={{.State.ExitCode}}', 'pod'])).stdout.trim()).toBe('0');
});
