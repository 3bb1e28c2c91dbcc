import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import type { DebianArchitecture } from '../debian/debian-root.ts';
import { root } from '../workspace.ts';
import { nodePackage, withScratchFolder } from './binaries.ts';
import {
  type AppName,
  type ImageDefinition,
  type ImageName,
  images,
  type LayerContent,
  type Target,
  targets,
} from './definitions.ts';
import { type BuiltImage, dockerBuild, type DockerCli } from './docker.ts';
import { addPrograms, fillLocalBase } from './debian-layers.ts';
import { renderBase } from '../../apps/kind-lb-controller/src/haproxy/render-base.ts';
import { containerBaseFile, containerFiles } from '../../apps/kind-lb-controller/src/worker/container-files.ts';
import { runProgram } from '../debian/run-program.ts';
import { addApp, addEbpf } from './app-layer.ts';

/** Which image to build, and with which Docker. */
export interface ImageOptions {
  readonly image: ImageName;
  readonly architecture: DebianArchitecture;
  readonly tag: string;
  /** Name of the image below; must bring glibc and libstdc++ of the Debian release this machine's packages are of. */
  readonly base: string;
  readonly docker: DockerCli;
  readonly signal: AbortSignal;
}

/** Builds an image from this checkout's bundles, which must be there. */
export function buildImage(options: ImageOptions): Promise<BuiltImage> {
  const { architecture, tag, base, docker, signal } = options;
  const image: ImageDefinition = images[options.image];
  return withScratchFolder(async (context) => {
    await fillContext(context, { image, target: targets[architecture], signal });
    const dockerfile = join(root, 'images', image.dockerfile, 'Dockerfile');
    const args = { BASE: base, VERSION: appVersion(image.app), ...image.args };
    return dockerBuild(docker, { dockerfile, context, tag, architecture, args }, signal);
  });
}

/** Which base to build. */
export type LocalBaseOptions = Pick<ImageOptions, 'architecture' | 'tag' | 'docker' | 'signal'>;

/** Builds a base from this machine's Debian packages: for tests, and where no registry can be reached. */
export function buildLocalBase({ architecture, tag, docker, signal }: LocalBaseOptions): Promise<BuiltImage> {
  return withScratchFolder(async (context) => {
    await fillLocalBase(context, targets[architecture], signal);
    const dockerfile = join(root, 'images/local-base/Dockerfile');
    return dockerBuild(docker, { dockerfile, context, tag, architecture, args: {} }, signal);
  });
}

/** The public base that fits the packages of this machine, or undefined if there is none. */
export function publicBase(): string | undefined {
  if (!existsSync('/etc/os-release')) return undefined;
  const release = readFileSync('/etc/os-release', 'utf8');
  const version = /^VERSION_ID="?(\d+)"?$/m.exec(release)?.[1];
  return /^ID=debian$/m.test(release) && version !== undefined ? `gcr.io/distroless/cc-debian${version}` : undefined;
}

/**
 * Default name of an image: the one that the manifests in deploy/ use. With an architecture, each has a name of its own, so that both
 * can be joined under the first.
 */
export function defaultTag(image: ImageName, architecture?: string): string {
  const suffix = architecture === undefined ? '' : `-${architecture}`;
  return `switchyard/${image}:${appVersion(images[image].app)}${suffix}`;
}

export function appVersion(app: AppName): string {
  const manifest = readFileSync(join(root, 'apps', app, 'package.json'), 'utf8');
  return (JSON.parse(manifest) as { readonly version: string }).version;
}

interface ContextOptions {
  readonly image: ImageDefinition;
  readonly target: Target;
  readonly signal: AbortSignal;
}

/** Fills a folder with what an image's Dockerfile copies. Times are fixed, so that equal content makes equal layers. */
async function fillContext(folder: string, { image, target, signal }: ContextOptions): Promise<void> {
  for (const [name, content] of Object.entries(image.layers)) {
    const layer = join(folder, name);
    await mkdir(layer);
    await fillLayer(layer, { content, target, signal });
  }
  await runProgram('find', [folder, '-exec', 'touch', '-h', '-d', '@0', '{}', '+'], { signal });
}

interface LayerOptions {
  readonly content: LayerContent;
  readonly target: Target;
  readonly signal: AbortSignal;
}

async function fillLayer(layer: string, { content, target, signal }: LayerOptions): Promise<void> {
  switch (content.kind) {
    case 'debian':
      return addPrograms(layer, content.of, target, signal);
    case 'node':
      return addNode(layer, target, signal);
    case 'app':
      return addApp(layer, { app: content.app, target, signal });
    case 'ebpf':
      return addEbpf(layer, target, signal);
    case 'haproxyBase':
      return addHaproxyBase(layer);
    case 'empty':
      return undefined;
  }
}

async function addNode(layer: string, target: Target, signal: AbortSignal): Promise<void> {
  const source = await nodePackage(target, signal);
  const licences = join(layer, 'usr/share/doc/node');
  await mkdir(join(layer, 'usr/local/bin'), { recursive: true });
  await mkdir(licences, { recursive: true });
  await copyFile(join(source, 'bin/node'), join(layer, 'usr/local/bin/node'));
  await copyFile(join(source, 'LICENSE'), join(licences, 'copyright'));
}

async function addHaproxyBase(layer: string): Promise<void> {
  const path = join(layer, containerBaseFile);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, renderBase(containerFiles));
}
