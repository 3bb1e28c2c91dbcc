import { readFile } from 'node:fs/promises';
import {
  createLab,
  type DockerEngine,
  dockerPackages,
  joinDockerNetwork,
  type Lab,
  startDockerEngine,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { debianRoot, machineArchitecture } from '../../../../../tools/debian/debian-root.ts';
import { buildImage, buildLocalBase } from '../../../../../tools/images/build-image.ts';
import { describeImage } from '../../../../../tools/images/describe.ts';
import type { BuiltImage } from '../../../../../tools/images/docker.ts';

// The production Dockerfiles, built by a real Docker Engine on a base made of this machine's Debian packages.

const signal = AbortSignal.timeout(600_000);
const stack = new AsyncDisposableStack();
let lab: Lab;
let engine: DockerEngine;
let loadBalancer: BuiltImage;
let controller: BuiltImage;

beforeAll(async () => {
  const programs = await debianRoot({ ...dockerPackages, signal });
  lab = stack.use(await createLab({ name: 'lbimage', nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal));
  engine = stack.use(await startDockerEngine({ lab, host: lab.loadBalancer, programs }, signal));
  stack.use(await joinDockerNetwork({ lab, host: lab.loadBalancer, engine }, signal));
  const common = { architecture: machineArchitecture(), docker: engine.command, signal };
  const { tag: base } = await buildLocalBase({ ...common, tag: 'base:test' });
  loadBalancer = await buildImage({ ...common, base, image: 'load-balancer', tag: 'load-balancer:test' });
  controller = await buildImage({ ...common, base, image: 'kind-lb-controller', tag: 'kind-lb-controller:test' });
});

afterAll(() => stack.disposeAsync());

async function docker(...args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await engine.cli(args);
  if (exitCode !== 0) throw new Error(`docker ${args.join(' ')} exited with ${exitCode}: ${stderr}`);
  return stdout.trim();
}

function runOnce(image: BuiltImage, program: string, args: readonly string[]): ReturnType<DockerEngine['cli']> {
  return engine.cli([
    'run',
    '--rm',
    '--network',
    'none',
    '--cap-drop',
    'ALL',
    '--entrypoint',
    program,
    image.tag,
    ...args,
  ]);
}

const layersOf = async ({ tag }: BuiltImage): Promise<readonly string[]> =>
  JSON.parse(await docker('image', 'inspect', '--format', '{{json .RootFS.Layers}}', tag)) as string[];

describe('the images', () => {
  test('have the layers of their definitions, and the controller’s has all of the load balancer’s below the Docker CLI', async () => {
    process.stdout.write(`${describeImage(loadBalancer)}\n${describeImage(controller)}\n`);
    const shared = ['base', 'node', 'programs', 'settings', 'run', 'controller'];
    expect(loadBalancer.layers.map(({ name }) => name)).toEqual(shared);
    expect(controller.layers.map(({ name }) => name)).toEqual([...shared, 'docker']);
    expect((await layersOf(controller)).slice(0, -1)).toEqual(await layersOf(loadBalancer));
  });

  test('are not larger than they need to be', () => {
    expect(loadBalancer.size).toBeLessThan(170e6);
    expect(controller.size).toBeLessThan(230e6);
  });

  test.each([
    ['haproxy', ['-vv'], /^HAProxy version 2\.[^]*Built with Lua version/],
    ['nft', ['--version'], /^nftables v/],
    ['ip', ['-V'], /^ip utility/],
    ['switchyard-lb', ['--help'], /^Usage: switchyard-lb/],
  ])('run %s %j', async (program, args, output) => {
    for (const image of [loadBalancer, controller]) {
      expect(await runOnce(image, program, args)).toMatchObject({
        exitCode: 0,
        stdout: expect.stringMatching(output) as string,
      });
    }
  });

  test.each(['/bin/sh', '/bin/bash', '/usr/bin/apt-get', '/usr/bin/env'])('have no %s', async (program) => {
    for (const image of [loadBalancer, controller]) {
      expect(await runOnce(image, program, [])).toMatchObject({ exitCode: 127 });
    }
  });
});

describe('a load balancer’s container', () => {
  let pids: readonly number[];

  beforeAll(async () => {
    const plan: ContainerPlan = {
      id: { cluster: 'kind', service: serviceKey('default', 'web') },
      engine: 'docker',
      network: 'kind',
      hasIpv6: true,
      image: loadBalancer.tag,
      imageId: loadBalancer.id,
      addresses: [],
      publishOn: undefined,
      ports: [],
      isDiscovered: false,
    };
    await docker(...createArguments(plan, new Set()), '-d'); // HAProxy's -d tells what it does
    name = containerName(plan.id);
    await docker('start', name);
    await expect.poll(async () => (await engine.pidsOf(name)).length, { timeout: 10_000 }).toBe(2);
    pids = await engine.pidsOf(name);
  });
});
