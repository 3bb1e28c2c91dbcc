import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Absolute path of the checkout. */
export const root: string = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');

/** Fields of a workspace package's manifest that the tools use. */
export interface Workspace {
  /** Folder relative to the checkout, for example `packages/core`. */
  readonly folder: string;
  readonly name: string;
  readonly layer: string;
  readonly targets: readonly string[];
  /** With the peer dependencies. */
  readonly dependencies: readonly string[];
  readonly devDependencies: readonly string[];
}

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly nx?: { readonly tags?: readonly string[]; readonly targets?: Readonly<Record<string, unknown>> };
}

/** Every workspace package, sorted by folder. Another checkout than this one is for tests. */
export function workspaces(checkout: string = root): readonly Workspace[] {
  return globSync(['packages/*/package.json', 'apps/*/package.json', 'e2e/package.json', 'examples/*/package.json'], {
    cwd: checkout,
  })
    .sort()
    .map((path) => readWorkspace(path, checkout));
}

function readWorkspace(path: string, checkout: string): Workspace {
  const manifest = JSON.parse(readFileSync(join(checkout, path), 'utf8')) as Manifest;
  const layer = manifest.nx?.tags?.find((tag) => tag.startsWith('layer:'))?.slice('layer:'.length);
  if (layer === undefined) throw new Error(`${path}: "nx.tags" has no "layer:..." entry; add one, see ARCHITECTURE.md`);
  return {
    folder: dirname(path),
    name: manifest.name,
    layer,
    targets: Object.keys(manifest.nx?.targets ?? {}),
    dependencies: Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }),
    devDependencies: Object.keys(manifest.devDependencies ?? {}),
  };
}
