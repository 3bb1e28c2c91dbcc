import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { UsageError } from '@switchyard/core';
import { Attribute, bpfError, orClose, tryBpf } from './call.ts';
import { readProgramInfo } from './info.ts';
import type { BpfProgram } from './types.ts';

const { ENOENT } = constants.errno;

export class KernelProgram implements BpfProgram {
  readonly name: string;
  readonly id: number;
  readonly tag: string;
  readonly mapIds: readonly number[];
  #fd: number | undefined;

  /** Owns the descriptor. `name`: as in the object file; the kernel keeps 15 characters. Throws `NativeError`. */
  constructor(fd: number, name?: string) {
    const info = orClose(fd, () => readProgramInfo(fd, `the BPF program ${name ?? ''}`));
    this.name = name ?? info.name;
    this.id = info.id;
    this.tag = info.tag;
    this.mapIds = info.mapIds;
    this.#fd = fd;
  }

  /** The descriptor. Throws `UsageError` after dispose. */
  get fd(): number {
    if (this.#fd !== undefined) return this.#fd;
    throw new UsageError('bpf.closed', `the BPF program ${this.name} was closed before`);
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** The program with this number; undefined when there is none. Throws `NativeError`. */
export function openProgramById(id: number): BpfProgram | undefined {
  const attempt = `cannot open the BPF program with the id ${id}`;
  const fd = tryBpf('PROG_GET_FD_BY_ID', { attempt, attribute: new Attribute(12).u32(0, id) });
  if (fd === -ENOENT) return undefined;
  if (fd < 0) throw bpfError('PROG_GET_FD_BY_ID', attempt, -fd);
  return new KernelProgram(fd);
}

/** The descriptor of a map, program or link of the kernel. Throws `UsageError` for those that only tests have. */
export function fdOf(thing: object): number {
  if ('fd' in thing && typeof thing.fd === 'number') return thing.fd;
  throw new UsageError('bpf.fake', 'this map, program or link is not one of the kernel');
}
