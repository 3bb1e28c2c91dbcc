import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../debian/run-program.ts';
import { root } from '../workspace.ts';
import { cachedFolder } from './cache.ts';
import type { Target } from './target.ts';

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
  return cachedFolder(`${name}-${version}`, fill, signal);
}

/** Version and hash of a package in the lockfile. */
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
