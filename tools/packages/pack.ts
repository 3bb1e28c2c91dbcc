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

/**
 * The named public packages and those that they depend on, in the order of `publicPackages`; all of them if `names` is empty.
 * Names may lack the scope. Throws for an unknown name.
 */
export function withDependencies(names: readonly string[]): ReturnType<typeof publicPackages> {
  const all = publicPackages();
  if (names.length === 0) return all;
  const wanted = new Set<string>();
  const add = (name: string): void => {
    const found = all.find((one) => one.name === name);
    if (found === undefined || wanted.has(name)) return;
    wanted.add(name);
    found.dependencies.forEach(add);
  };
  for (const name of names) {
    const full = name.startsWith(scope) ? name : `${scope}${name}`;
    if (!all.some((one) => one.name === full)) {
      const known = all.map((one) => one.name.slice(scope.length)).join(', ');
      throw new Error(`there is no public package '${name}', only ${known}`);
    }
    add(full);
  }
  return all.filter((one) => wanted.has(one.name));
}

const scope = '@switchyard/';

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
