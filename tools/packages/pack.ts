import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../debian/run-program.ts';
import { root, workspaces } from '../workspace.ts';

/** A package as npm would publish it. */
export interface Pack {
  /** `@switchyard/core`. */
  readonly name: string;
  /** Absolute path of the tarball. */
  readonly tarball: string;
  /** Paths inside the package, sorted. */
  readonly files: readonly string[];
  /** Of the tarball, in bytes. */
  readonly size: number;
}

/** Packages that others may install: the libraries and the conformance runner. */
export function publicPackages(): readonly ReturnType<typeof workspaces>[number][] {
  return workspaces().filter(({ folder }) => folder.startsWith('packages/') || folder === 'apps/conformance');
}

/** Packs a package as it is built now. Rejects with npm's words. */
export async function packPackage(folder: string, target: string, signal: AbortSignal): Promise<Pack> {
  await mkdir(target, { recursive: true });
  // npm may be set to run no scripts, `prepack` among them.
  await copyFile(join(root, 'LICENSE'), join(root, folder, 'LICENSE'));
  const args = ['pack', '--json', '--pack-destination', target];
  const { stdout } = await runProgram('npm', args, { cwd: join(root, folder), signal });
  const [found] = JSON.parse(stdout.slice(stdout.indexOf('['))) as readonly NpmPack[];
  if (found === undefined) throw new Error(`npm pack made nothing of ${folder}`);
  const { name, filename, size, files } = found;
  return { name, tarball: join(target, filename), size, files: files.map(({ path }) => path).sort() };
}

interface NpmPack {
  readonly name: string;
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}
