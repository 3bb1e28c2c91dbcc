import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { type ProjectGraph, readJson, type Tree, updateJson } from 'nx/src/devkit-exports.js';
import { VersionActions } from 'nx/release';
import { replaceVersion } from './version-places.ts';

interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

const collections = ['dependencies', 'devDependencies'] as const;

/** Reads and writes versions in `package.json` for `nx release`: nx brings its own only with the package @nx/js. */
class PackageVersions extends VersionActions {
  validManifestFilenames: string[] = ['package.json'];

  async readCurrentVersionFromSourceManifest(tree: Tree): Promise<{ currentVersion: string; manifestPath: string }> {
    const manifestPath = this.#pathOf(this.projectGraphNode.data.root);
    return { currentVersion: readJson<Manifest>(tree, manifestPath).version, manifestPath };
  }

  /** No registry has the packages. */
  async readCurrentVersionFromRegistry(): Promise<null> {
    return null;
  }

  async readCurrentVersionOfDependency(
    tree: Tree,
    graph: ProjectGraph,
    name: string,
  ): Promise<{ currentVersion: string | null; dependencyCollection: string | null }> {
    const manifest = readJson<Manifest>(tree, this.#pathOf(this.projectGraphNode.data.root));
    const packageName = this.#packageOf(graph, name);
    const collection = collections.find((one) => manifest[one]?.[packageName] !== undefined);
    return {
      currentVersion: collection === undefined ? null : (manifest[collection]?.[packageName] ?? null),
      dependencyCollection: collection ?? null,
    };
  }

  async updateProjectVersion(tree: Tree, newVersion: string): Promise<string[]> {
    const logs: string[] = [];
    for (const { manifestPath } of this.manifestsToUpdate) {
      updateJson<Manifest>(tree, manifestPath, (manifest) => ({ ...manifest, version: newVersion }));
      logs.push(`version ${newVersion} in ${manifestPath}`);
    }
    return logs;
  }

  async updateProjectDependencies(
    tree: Tree,
    graph: ProjectGraph,
    versions: Record<string, string>,
  ): Promise<string[]> {
    for (const { manifestPath } of this.manifestsToUpdate) {
      updateJson<Manifest>(tree, manifestPath, (manifest) => {
        for (const [name, version] of Object.entries(versions)) {
          for (const collection of collections) {
            const wanted = manifest[collection];
            const packageName = this.#packageOf(graph, name);
            if (wanted?.[packageName] !== undefined) wanted[packageName] = version;
          }
        }
        return manifest;
      });
    }
    return [];
  }

  #pathOf(folder: string): string {
    return join(folder, 'package.json');
  }

  #packageOf(graph: ProjectGraph, name: string): string {
    return graph.nodes[name]?.data.metadata?.js?.packageName ?? name;
  }
}

/** Writes the new version into the manifest of the root, the places of `version-places.ts` and the lockfile. */
export async function afterAllProjectsVersioned(
  cwd: string,
  { dryRun = false }: { readonly dryRun?: boolean },
): Promise<{ changedFiles: string[]; deletedFiles: string[] }> {
  if (dryRun) return { changedFiles: [], deletedFiles: [] };
  const versionOf = (folder: string): string =>
    (JSON.parse(readFileSync(join(cwd, folder, 'package.json'), 'utf8')) as Manifest).version;
  const changed = replaceVersion(cwd, versionOf('.'), versionOf('packages/core'));
  await execa('npm', ['install', '--package-lock-only', '--ignore-scripts'], { cwd });
  return { changedFiles: [...changed, 'package-lock.json'], deletedFiles: [] };
}

export { PackageVersions as default };
