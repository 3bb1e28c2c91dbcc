import { readFile, rename, writeFile } from 'node:fs/promises';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';

/**
 * The last applied state. Without one, nothing was ever applied here: a worker writes it before it changes the kernel, and it is
 * never removed.
 */
export interface AppliedState {
  readonly spec: LoadBalancerSpec;
  readonly isPublished: boolean;
  /** HAProxy's configuration, without the base. Undefined while a worker changes it, and after it was killed doing so. */
  readonly text: string | undefined;
}

/** Changes with the shape: what another version left is as good as nothing. */
const version = 1;

/** Reads the last applied state; undefined if unknown. */
export async function readApplied(path: string): Promise<AppliedState | undefined> {
  try {
    const saved = JSON.parse(await readFile(path, 'utf8')) as { readonly version?: unknown; readonly state?: unknown };
    return saved.version === version ? (saved.state as AppliedState) : undefined; // we wrote it ourselves
  } catch {
    return undefined;
  }
}

/** Replaces the file at once. */
export async function writeApplied(path: string, state: AppliedState): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify({ version, state }), { mode: 0o600 });
  await rename(`${path}.new`, path);
}
