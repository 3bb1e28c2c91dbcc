import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { debianRoot } from '../debian/debian-root.ts';
import { copyLicences } from './programs-layer.ts';
import type { Target } from './target.ts';

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
