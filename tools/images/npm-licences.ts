import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';

/** Folders of the npm packages whose code is in a bundle, sorted: its source maps name every file that went in. */
export async function bundledPackages(bundle: string): Promise<readonly string[]> {
  const folders = new Set<string>();
  for (const name of await readdir(bundle)) {
    if (!name.endsWith('.map')) continue;
    const { sources } = JSON.parse(await readFile(join(bundle, name), 'utf8')) as {
      readonly sources: readonly string[];
    };
    for (const source of sources) {
      const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(source) ?? [];
      if (folder !== undefined) folders.add(resolve(bundle, folder));
    }
  }
  return [...folders].sort();
}

/**
 * Writes the terms of npm packages to `documents/NAME-VERSION/copyright`: the package's own files, or what its package.json says
 * where it has none. Throws for a package that says nothing.
 */
export async function copyNpmLicences(packages: readonly string[], documents: string): Promise<void> {
  for (const folder of packages) {
    const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Partial<
      Record<string, string>
    >;
    const { name = '', version = '', license } = manifest;
    const target = join(documents, `${name}-${version}`, 'copyright');
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, await licenceText(folder, license));
  }
}

async function licenceText(folder: string, licence: string | undefined): Promise<string> {
  const names = (await readdir(folder)).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name)).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  if (texts.length > 0) return texts.join('\n');
  if (licence === undefined) throw new Error(`${folder}: no file and no field names a licence`);
  return `${licence}\n`;
}
