import { chmod, copyFile, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { millis } from '@switchyard/core';
import {
  createLab,
  type DockerEngine,
  dockerPackages,
  type Lab,
  type LabCommandResult,
  startDockerEngine,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { debianRoot, machineArchitecture } from '../../../../../tools/debian/debian-root.ts';
import { buildImage, buildLocalBase } from '../../../../../tools/images/build-image.ts';
import { type BuiltImage, describeImage } from '../../../../../tools/images/docker.ts';
import { bpfObjects } from '../../../../../tools/images/app-layer.ts';
import { targets } from '../../../../../tools/images/definitions.ts';
import { succeed } from './container.ts';

// The image for the architecture that this machine does not have, built here: that for ebpf, which has all that the others have. Its
// programs run in qemu's user mode: called by name, never registered with the kernel, whose table of binary formats belongs to the whole machine.

const { signal } = new AbortController();
const target = targets[machineArchitecture() === 'amd64' ? 'arm64' : 'amd64'];
const { architecture } = target;

let lab: Lab;
let engine: DockerEngine;
let image: BuiltImage;
/** The image's files, with qemu in their root. */
let tree: string;

beforeAll(async () => {
  const programs = await debianRoot({ ...dockerPackages, signal });
  const emulators = await debianRoot({ packages: ['qemu-user-static'], signal });
  lab = await createLab({ name: 'foreign', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  engine = await startDockerEngine({ lab, host: lab.nodes[0]!, programs }, signal);
  const docker = engine.command;
  const base = await buildLocalBase({ architecture, tag: 'base:foreign', docker, signal });
  image = await buildImage({
    image: 'agent-ebpf',
    architecture,
    tag: 'agent:foreign',
    base: base.tag,
    docker,
    signal,
  });
  tree = join(lab.diskFolder, 'image');
  await mkdir(tree, { recursive: true });
  await unpackImage();
  await copyFile(join(emulators, `usr/bin/qemu-${target.qemu}-static`), join(tree, 'qemu'));
  await chmod(join(tree, 'qemu'), 0o755);
});

afterAll(async () => {
  await engine?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

/** A container that never runs lends its file system. */
async function unpackImage(): Promise<void> {
  const archive = join(tree, 'image.tar');
  await succeed(engine, ['create', '--platform', `linux/${architecture}`, '--name', 'foreign', image.tag]);
  await succeed(engine, ['export', '--output', archive, 'foreign']);
  const unpacked = await lab.client.run('tar', ['-C', tree, '-xf', archive]);
  expect(unpacked).toMatchObject({ exitCode: 0 });
  await rm(archive);
}

/** Runs a program of the image with nothing of this machine in sight but the kernel, and no network. */
function emulate(program: string, ...args: readonly string[]): Promise<LabCommandResult> {
  return lab.client.run('chroot', [tree, '/qemu', program, ...args], { timeout: millis(60_000) });
}

/** The machine each ELF file of a folder is for, by path. */
async function elfMachines(folder: string): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    await using file = await open(path);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(20), position: 0 });
    if (bytesRead === 20 && buffer.toString('latin1', 0, 4) === '\u007fELF') found.set(path, buffer.readUInt16LE(18));
  }
  return found;
}

test('every binary in the image is for the other architecture', async () => {
  process.stdout.write(`${describeImage(image)}\n`);
  const format = await succeed(engine, ['image', 'inspect', '--format', '{{.Os}}/{{.Architecture}}', image.tag]);
  expect(format.trim()).toBe(`linux/${architecture}`);
  const machines = await elfMachines(join(tree, 'usr'));
  for (const name of [
    'local/bin/node',
    'local/bin/switchyard-agent',
    'local/lib/switchyard/switchyard_native.node',
    'local/lib/switchyard/switchyard_bpf.node',
  ]) {
    expect(machines.get(join(tree, 'usr', name)), name).toBe(target.elfMachine);
  }
  const others = [...machines].filter(([, machine]) => machine !== target.elfMachine);
  const ofTheKernel = bpfObjects.map((name): [string, number] => [join(tree, 'usr/local/lib/switchyard', name), 247]);
  expect(others.toSorted()).toEqual(ofTheKernel);
});

test('the terms of what is in it are in the image: of Debian packages, of Node, and of npm packages in the bundle', async () => {
  const documents = await readdir(join(tree, 'usr/share/doc'), { recursive: true });
  expect(documents).toEqual(
    expect.arrayContaining([
      'libbpf1/copyright',
      'libc6/copyright',
      'node/copyright',
      'switchyard/bpf/copyright',
      'switchyard/copyright',
      expect.stringMatching(/^switchyard\/npm\/pino-[\d.]+\/copyright$/),
    ]),
  );
});

test('the agent starts there and prints its version', async () => {
  const version = await emulate('/usr/local/bin/node', '/usr/local/lib/switchyard/main.mjs', '--version');
  expect(version).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^switchyard-agent /) as string });
});

test.each(['switchyard_native', 'switchyard_bpf'])('the addon %s loads there', async (addon) => {
  const load = `process.stdout.write(String(Object.keys(require("/usr/local/lib/switchyard/${addon}.node")).length))`;
  const loaded = await emulate('/usr/local/bin/node', '--eval', load);
  expect(loaded).toMatchObject({ exitCode: 0, stderr: '' });
  expect(Number(loaded.stdout)).toBeGreaterThan(0);
});

test.each([
  ['iptables-nft-save', /nf_tables/],
  ['iptables-legacy-save', /legacy/],
])('%s starts there with the libraries of the image', async (program, output) => {
  const version = await emulate(`/usr/sbin/${program}`, '--version');
  expect(version).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(output) as string });
});

test('the launcher gets as far as an emulated process can: the kernel itself would have to run the other Node', async () => {
  const started = await emulate('/usr/local/bin/kube-proxy', '--version');
  expect(started).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('cannot run /usr/local/bin/node') as string,
  });
});
