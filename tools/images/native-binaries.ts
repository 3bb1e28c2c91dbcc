import { createHash } from 'node:crypto';
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { debianRoot, machineArchitecture } from '../debian/debian-root.ts';
import { runProgram } from '../debian/run-program.ts';
import { root } from '../workspace.ts';
import { cachedFolder } from './cache.ts';
import { type Target, targets } from './target.ts';

const source = join(root, 'packages/native');

/** Small programs that become others, in images, which have no shell. */
const launchers = ['switchyard-launcher', 'switchyard-lb-haproxy'] as const;
const addons = ['switchyard_native', 'switchyard_bpf'] as const;

/**
 * Folder with both addons (`switchyard_native.node`, `switchyard_bpf.node`) and the launchers for the target. Another architecture's are made by
 * Debian's cross compiler, which is unpacked for that, not installed.
 */
export async function nativeBinaries(target: Target, signal: AbortSignal): Promise<string> {
  const compiler = target.architecture === machineArchitecture() ? undefined : await unpackCompiler(target, signal);
  const fill = async (folder: string): Promise<void> => {
    const build = join(folder, 'build');
    const env = compiler === undefined ? {} : { LD_LIBRARY_PATH: compiler.libraries };
    const configure = ['-S', source, '-B', build, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Release'];
    const cross = compiler === undefined ? [] : crossSettings(target, compiler);
    await runProgram('cmake', [...configure, ...cross], { cwd: source, env, signal });
    await runProgram('cmake', ['--build', build, '--target', ...addons, ...launchers], {
      cwd: source,
      env,
      signal,
    });
    const files = [...addons.map((name) => `${name}.node`), ...launchers].map((name) => join(build, name));
    await runProgram('cp', [...files, folder], { signal });
    await runProgram('rm', ['-r', build], { signal });
  };
  return cachedFolder(`native-${target.architecture}-${await sourceKey()}`, fill, signal);
}

interface CrossCompiler {
  readonly folder: string;
  /** Where the compiler's own libraries are. */
  readonly libraries: string;
  /** A root folder with libbpf's headers and library for the target. */
  readonly libbpf: string;
}

async function unpackCompiler(target: Target, signal: AbortSignal): Promise<CrossCompiler> {
  const exclude = ['perl', 'libc6'];
  const folder = await debianRoot({ packages: [target.crossCompiler], exclude, signal });
  const { architecture } = target;
  const libbpf = await debianRoot({ packages: ['libbpf-dev'], exclude: targetLibraries, architecture, signal });
  return { folder, libraries: join(folder, 'usr/lib', targets[machineArchitecture()].triplet), libbpf };
}

/** The compiler brings the C library and the kernel's headers for the target. */
const targetLibraries = ['libc6', 'libc6-dev', 'linux-libc-dev'];

function crossSettings({ triplet }: Target, { folder, libbpf }: CrossCompiler): readonly string[] {
  const root = `-DCROSS_ROOT=${folder}`;
  return ['-DCMAKE_TOOLCHAIN_FILE=cross.cmake', root, `-DCROSS_TRIPLE=${triplet}`, `-DBPF_ROOT=${libbpf}`];
}

/** Hash of all compiler inputs from this checkout and from npm. */
async function sourceKey(): Promise<string> {
  const hash = createHash('sha256');
  const files = globSync(['CMakeLists.txt', 'cross.cmake', 'cmake/*', 'bpf/*', 'cpp/**/*.{cc,h}'], {
    cwd: source,
  }).sort();
  for (const file of files) hash.update(file).update(await readFile(join(source, file)));
  for (const name of ['node-api-headers', 'node-addon-api']) {
    hash.update(await readFile(join(root, 'node_modules', name, 'package.json')));
  }
  return hash.digest('hex').slice(0, 12);
}
