import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { HostError } from '@switchyard/core';
import { Attribute, bpfError, cString, tryBpf } from './call.ts';
import { fdOf } from './kernel-program.ts';
import type { BpfLink, BpfMap, BpfProgram } from './types.ts';

const { EEXIST } = constants.errno;

/** Options of a pin. */
export interface PinOptions {
  /** Replaces an existing pin atomically. */
  readonly replace?: boolean;
}

/** Pins something; makes folders. Names have no dots (rule of the kernel). Throws `NativeError`: EEXIST, or EPERM or EINVAL without a bpffs. */
export function pin(thing: BpfMap | BpfProgram | BpfLink, path: string, options: PinOptions = {}): void {
  const fd = fdOf(thing);
  mkdirSync(dirname(path), { recursive: true });
  const result = tryPin(fd, path);
  if (result === 0) return;
  if (result !== -EEXIST || options.replace !== true) throw pinError(path, -result);
  const beside = `${path}-new`;
  unpin(beside); // of a process that ended halfway
  const retried = tryPin(fd, beside);
  if (retried !== 0) throw pinError(beside, -retried);
  renameSync(beside, path);
}

function tryPin(fd: number, path: string): number {
  return tryBpf('OBJ_PIN', { attempt: '', attribute: new Attribute(16).u32(8, fd), pointers: [0, cString(path)] });
}

function pinError(path: string, errno: number): HostError {
  return bpfError('OBJ_PIN', `cannot pin something at ${path}`, errno);
}

/** Removes a pin and returns whether there was one. The kernel frees the object when nothing else holds it. */
export function unpin(path: string): boolean {
  try {
    rmSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw new HostError('bpf.unpin', `cannot unpin ${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** Names of pins and folders in a folder, sorted; none for a folder that does not exist. */
export function listPins(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new HostError('bpf.pins', `cannot list what is pinned in ${folder}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
