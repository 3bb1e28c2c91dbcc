import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../debian/run-program.ts';
import { root } from '../workspace.ts';
import { type ImageBackend, imageBackends } from './backends.ts';
import { nativeBinaries } from './native-binaries.ts';
import { nodePackage } from './node-binary.ts';
import { bundledPackages, copyNpmLicences } from './npm-licences.ts';
import { addPrograms } from './programs-layer.ts';
import type { Target } from './target.ts';

const bundle = join(root, 'apps/node-agent/dist-bundle');

/** What an agent image is made of. */
export interface AgentContextOptions {
  readonly backend: ImageBackend;
  readonly target: Target;
  readonly signal: AbortSignal;
}

/**
 * Fills a folder with what `images/agent-<backend>/Dockerfile` copies. Times are fixed, so that equal content makes equal layers.
 */
export async function fillAgentContext(folder: string, options: AgentContextOptions): Promise<void> {
  const { backend, target, signal } = options;
  if (!existsSync(join(bundle, 'main.mjs'))) throw new Error(`the agent is not bundled (${bundle}): run ./dev build`);
  await addPrograms(join(folder, 'programs'), imageBackends[backend], target, signal);
  await addNode(join(folder, 'node'), target, signal);
  await addAgent(join(folder, 'agent'), target, signal);
  await runProgram('find', [folder, '-exec', 'touch', '-h', '-d', '@0', '{}', '+'], { signal });
}

async function addNode(layer: string, target: Target, signal: AbortSignal): Promise<void> {
  const source = await nodePackage(target, signal);
  const licences = join(layer, 'usr/share/doc/node');
  await mkdir(join(layer, 'usr/local/bin'), { recursive: true });
  await mkdir(licences, { recursive: true });
  await copyFile(join(source, 'bin/node'), join(layer, 'usr/local/bin/node'));
  await copyFile(join(source, 'LICENSE'), join(licences, 'copyright'));
}

/** The addon in the bundle is this machine's; the target's replaces it. Source maps stay out: Node is not told to read them. */
async function addAgent(layer: string, target: Target, signal: AbortSignal): Promise<void> {
  const [programs, library] = [join(layer, 'usr/local/bin'), join(layer, 'usr/local/lib/switchyard')];
  const licences = join(layer, 'usr/share/doc/switchyard');
  await mkdir(programs, { recursive: true });
  await mkdir(licences, { recursive: true });
  await cp(bundle, library, { recursive: true, filter: (path) => !/\.(map|node)$/.test(path) });
  const native = await nativeBinaries(target, signal);
  await copyFile(join(native, 'switchyard_native.node'), join(library, 'switchyard_native.node'));
  await copyFile(join(native, 'switchyard-agent'), join(programs, 'switchyard-agent'));
  await symlink('switchyard-agent', join(programs, 'kube-proxy'));
  await copyFile(join(root, 'LICENSE'), join(licences, 'copyright'));
  const compiledIn = ['node-addon-api', 'node-api-headers'].map((name) => join(root, 'node_modules', name));
  await copyNpmLicences([...(await bundledPackages(bundle)), ...compiledIn], join(licences, 'npm'));
}
