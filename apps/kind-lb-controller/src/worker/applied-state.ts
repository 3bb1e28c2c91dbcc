import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';

/** What a worker has brought to an end. While one is at work, or after it was killed, there is no such state. */
export interface AppliedState {
  readonly spec: LoadBalancerSpec;
  readonly isPublished: boolean;
  /** HAProxy's configuration, without the base. */
  readonly text: string;
}

/** Changes with the shape: what another version left is as good as nothing. */
const version = 1;

/** What was applied last; undefined if that is not known. */
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

/** From now on it is not known what is applied. */
export function forgetApplied(path: string): Promise<void> {
  return rm(path, { force: true });
}
