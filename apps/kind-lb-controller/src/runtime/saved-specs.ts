import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';

/** Changes with the shape of specs: what another version saved is not read. */
const version = 2;

/** The specs that a file holds. Empty if there is no file, or it was not written by this version. */
export async function readSpecs(path: string): Promise<readonly LoadBalancerSpec[]> {
  try {
    const saved = JSON.parse(await readFile(path, 'utf8')) as { readonly version?: unknown; readonly specs?: unknown };
    // An own file has this shape; any other content counts as none.
    return saved.version === version && Array.isArray(saved.specs) ? (saved.specs as LoadBalancerSpec[]) : [];
  } catch {
    return [];
  }
}

/** The spec as `readSpecs` would give it back: without fields that are undefined. */
export function asSaved(spec: LoadBalancerSpec): LoadBalancerSpec {
  return JSON.parse(JSON.stringify(spec)) as LoadBalancerSpec; // the same type: undefined and absent read alike
}

/** Replaces the file at once: a reader finds the old specs or the new ones. */
export async function writeSpecs(path: string, specs: readonly LoadBalancerSpec[]): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify({ version, specs }), { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Removes the file, if it is there. */
export function removeSpecs(path: string): Promise<void> {
  return rm(path, { force: true });
}
