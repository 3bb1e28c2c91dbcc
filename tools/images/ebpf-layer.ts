import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../workspace.ts';
import { appPlaces } from './app-layer.ts';
import type { DebianPrograms } from './definitions.ts';
import { nativeBinaries } from './native-binaries.ts';
import { addPrograms } from './programs-layer.ts';
import type { Target } from './target.ts';

const source = join(root, 'packages/backend-ebpf');

/** BPF objects that the agent loads; one file serves every little-endian machine. */
export const bpfObjects = ['socket.bpf.o', 'wire.bpf.o'] as const;

/** libbpf, which the addon links, and what that needs; no program. */
export const ebpfLibraries: DebianPrograms = { packages: ['libbpf1'], exclude: [], programs: /^$/ };

/**
 * Puts what the ebpf mode needs into `layer`, beside the agent's bundle: the addon that speaks bpf(2), its libraries, the objects, and under
 * which terms all that may be passed on.
 */
export async function addEbpf(layer: string, target: Target, signal: AbortSignal): Promise<void> {
  const library = join(layer, 'usr/local/lib', appPlaces['node-agent'].library);
  const licence = join(layer, 'usr/share/doc', appPlaces['node-agent'].library, 'bpf');
  await mkdir(library, { recursive: true });
  await mkdir(licence, { recursive: true });
  for (const name of bpfObjects) {
    const object = join(source, 'build', name);
    if (!existsSync(object)) throw new Error(`the BPF programs are not compiled (${object}): run ./dev build`);
    await copyFile(object, join(library, name));
  }
  const native = await nativeBinaries(target, signal);
  await copyFile(join(native, 'switchyard_bpf.node'), join(library, 'switchyard_bpf.node'));
  await copyFile(join(source, 'bpf/LICENSE'), join(licence, 'copyright'));
  await addPrograms(layer, ebpfLibraries, target, signal);
}
