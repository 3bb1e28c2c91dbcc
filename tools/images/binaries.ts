import { existsSync, globSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import { cachedFolder, cacheFolder, runProgram } from '../debian/run-program.ts';
import { root } from '../workspace.ts';
import { debianRoot, machineArchitecture } from '../debian/debian-root.ts';
import { type Target, targets } from './definitions.ts';

const cache = 'switchyard-images';
const folder = cacheFolder(cache);

/** A folder of the cache that is there for the length of `use`. Those of processes that were killed are removed first. */
export async function withScratchFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(folder)) {
    const owner = /^scratch-(\d+)-/.exec(name)?.[1];
    if (owner === undefined || existsSync(`/proc/${owner}`)) continue;
    await rm(join(folder, name), { recursive: true, force: true });
  }
  const scratch = await mkdtemp(join(folder, `scratch-${process.pid}-`));
  try {
    return await use(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

const source = join(root, 'packages/native');

/** Small programs for images, which have no shell; launchers become others. */
const programs = ['switchyard-launcher', 'switchyard-lb-haproxy', 'switchyard-drain-hook'] as const;
const addons = ['switchyard_native', 'switchyard_bpf'] as const;

/**
 * Folder with both addons (`switchyard_native.node`, `switchyard_bpf.node`) and the programs for the target. Another architecture's are made by
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
    await runProgram('cmake', ['--build', build, '--target', ...addons, ...programs], {
      cwd: source,
      env,
      signal,
    });
    const files = [...addons.map((name) => `${name}.node`), ...programs].map((name) => join(build, name));
    await runProgram('cp', [...files, folder], { signal });
    await runProgram('rm', ['-r', build], { signal });
  };
  return cachedFolder(cache, `native-${target.architecture}-${await sourceKey()}`, fill, signal);
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

/**
 * Folder with `bin/node` and its `LICENSE`: the npm package `node-linux-<arch>` at the version and hash of our lockfile. `npm ci`
 * installs this machine's; another architecture's is fetched with npm.
 */
export async function nodePackage(target: Target, signal: AbortSignal): Promise<string> {
  const name = `node-linux-${target.node}`;
  const installed = join(root, 'node_modules', name);
  if (existsSync(join(installed, 'bin/node'))) return installed;
  const { version, integrity } = lockedPackage(name);
  const fill = async (folder: string): Promise<void> => {
    const pack = ['pack', '--silent', '--pack-destination', folder, `${name}@${version}`];
    await runProgram('npm', pack, { cwd: root, signal });
    const archive = (await readdir(folder)).find((file) => file.endsWith('.tgz'));
    if (archive === undefined) throw new Error(`npm pack ${name}@${version} left no archive in ${folder}`);
    const found = `sha512-${createHash('sha512')
      .update(await readFile(join(folder, archive)))
      .digest('base64')}`;
    if (found !== integrity) {
      throw new Error(`${name}@${version} from the npm registry is not what package-lock.json says: ${found}`);
    }
    const wanted = ['package/bin/node', 'package/LICENSE'];
    const unpack = ['-xzf', archive, '--strip-components=1', '--no-same-owner', ...wanted];
    await runProgram('tar', unpack, { cwd: folder, signal });
    await rm(join(folder, archive));
  };
  return cachedFolder(cache, `${name}-${version}`, fill, signal);
}

export interface LockedPackage {
  readonly version: string;
  readonly integrity: string;
}

/** Version and hash of an npm package in the lockfile. Throws if it is not there. */
export function lockedPackage(name: string): LockedPackage {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, Partial<LockedPackage>>>;
  };
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {};
  if (version === undefined || integrity === undefined) throw new Error(`package-lock.json does not pin ${name}`);
  return { version, integrity };
}
