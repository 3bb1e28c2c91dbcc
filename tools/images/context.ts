import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { renderBase } from '../../apps/kind-lb-controller/src/haproxy/render-base.ts';
import { containerBaseFile, containerFiles } from '../../apps/kind-lb-controller/src/worker/container-files.ts';
import { runProgram } from '../debian/run-program.ts';
import { addApp } from './app-layer.ts';
import { addEbpf } from './ebpf-layer.ts';
import type { ImageDefinition, LayerContent } from './definitions.ts';
import { nodePackage } from './node-binary.ts';
import { addPrograms } from './programs-layer.ts';
import type { Target } from './target.ts';

/** Image and target of a build context. */
export interface ContextOptions {
  readonly image: ImageDefinition;
  readonly target: Target;
  readonly signal: AbortSignal;
}

/**
 * Fills a folder with what an image's Dockerfile copies. Times are fixed, so that equal content makes equal layers.
 */
export async function fillContext(folder: string, { image, target, signal }: ContextOptions): Promise<void> {
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
