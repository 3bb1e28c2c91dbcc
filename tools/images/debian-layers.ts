import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { debianRoot } from '../debian/debian-root.ts';
import type { DebianPrograms, Target } from './definitions.ts';

/** Packages that the base image contains. */
const baseLibraries = ['libc6', 'libgcc-s1', 'gcc-12-base', 'gcc-14-base', 'libstdc++6'];
/** Text files such as /etc/protocols, which no program reads. */
const unneeded = ['netbase'];

/**
 * Puts programs of Debian packages and their libraries into `layer`, all below /usr: some bases have a link /lib there, which a
 * folder must not replace. Each package's licence comes along.
 */
export async function addPrograms(
  layer: string,
  debian: DebianPrograms,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  const tree = await programsTree(debian, target, signal);
  const [libraries, programs] = [join(layer, 'usr/lib', target.triplet), join(layer, 'usr/sbin')];
  for (const from of ['lib', 'usr/lib']) {
    await copyMatching(join(tree, from, target.triplet), libraries, /\.so(\.|$)/);
  }
  await copyMatching(join(tree, 'usr/lib', target.triplet, 'xtables'), join(libraries, 'xtables'), /^lib(xt|ip6?t)_/);
  for (const from of ['sbin', 'bin', 'usr/sbin', 'usr/bin']) {
    await copyMatching(join(tree, from), programs, debian.programs);
  }
  await copyLicences(tree, layer);
}

/** Folder with the unpacked packages, and the file `packageListFile` that lists them. Rejects as `debianRoot`. */
export function programsTree(
  { packages, exclude }: DebianPrograms,
  { architecture }: Target,
  signal: AbortSignal,
): Promise<string> {
  return debianRoot({ packages, exclude: [...baseLibraries, ...unneeded, ...exclude], architecture, signal });
}

/** The files that say under which terms each package in `tree` may be passed on. */
async function copyLicences(tree: string, layer: string): Promise<void> {
  const documents = 'usr/share/doc';
  for (const name of await readdir(join(tree, documents))) {
    await copyMatching(join(tree, documents, name), join(layer, documents, name), /^copyright$/);
  }
}

/** Copies the files and links of a folder whose names match; a folder that is not there is an empty one. */
async function copyMatching(from: string, to: string, pattern: RegExp): Promise<void> {
  if (!existsSync(from)) return;
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (entry.isDirectory() || !pattern.test(entry.name)) continue;
    await mkdir(to, { recursive: true });
    await cp(join(from, entry.name), join(to, entry.name), { verbatimSymlinks: true });
  }
}

/**
 * Fills a folder with what `images/local-base/Dockerfile` copies: the C and C++ libraries of Debian, the names of the users
 * root and nobody, and /tmp. No shell, no program but the dynamic loader.
 */
export async function fillLocalBase(folder: string, target: Target, signal: AbortSignal): Promise<void> {
  const tree = await debianRoot({ packages: ['libstdc++6'], architecture: target.architecture, signal });
  const rootfs = join(folder, 'rootfs');
  await mkdir(join(rootfs, 'etc'), { recursive: true });
  await mkdir(join(rootfs, 'tmp'));
  for (const part of ['lib', 'lib64', 'usr/lib']) {
    await cp(join(tree, part), join(rootfs, part), { recursive: true, verbatimSymlinks: true, force: true }).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error; // not every architecture has /lib64
      },
    );
  }
  await rm(join(rootfs, 'usr/lib', target.triplet, 'gconv'), { recursive: true, force: true });
  await copyLicences(tree, rootfs);
  await writeFile(join(rootfs, 'etc/passwd'), 'root:x:0:0:root:/:/none\nnobody:x:65534:65534:nobody:/:/none\n');
  await writeFile(join(rootfs, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n');
  await writeFile(join(rootfs, 'etc/nsswitch.conf'), 'hosts: files dns\n');
}
