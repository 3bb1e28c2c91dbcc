import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import { UsageError } from '@switchyard/core';
import { Attribute, bpfError, callBpf, orClose, tryBpf } from './call.ts';
import { type BpfLinkInfo, readLinkInfo } from './info.ts';
import { fdOf } from './kernel-program.ts';
import { openPin } from './open-map.ts';
import type { BpfLink, BpfProgram } from './types.ts';

const { ENOLINK } = constants.errno;

export class KernelLink implements BpfLink {
  readonly id: number;
  readonly #what: string;
  #fd: number | undefined;

  /** Owns the descriptor from now on; closes it when the kernel gives no information about it. Throws `NativeError`. */
  constructor(fd: number, what: string) {
    this.#what = what;
    this.#fd = fd;
    this.id = orClose(fd, () => readLinkInfo(fd, what)).id;
  }

  /** Reads it from the kernel each time: other processes may update the link. */
  get programId(): number {
    return readLinkInfo(this.fd, this.#what).programId;
  }

  /** The descriptor. Throws `UsageError` after dispose. */
  get fd(): number {
    if (this.#fd !== undefined) return this.#fd;
    throw new UsageError('bpf.closed', `${this.#what} was closed before`);
  }

  update(program: BpfProgram): void {
    const attribute = new Attribute(16).u32(0, this.fd).u32(4, fdOf(program));
    callBpf('LINK_UPDATE', { attempt: `cannot put the program ${program.name} into ${this.#what}`, attribute });
  }

  detach(): void {
    const attempt = `cannot detach ${this.#what}`;
    const result = tryBpf('LINK_DETACH', { attempt, attribute: new Attribute(4).u32(0, this.fd) });
    if (result < 0 && result !== -ENOLINK) throw bpfError('LINK_DETACH', attempt, -result);
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Reads the kernel's current information about a link. Throws `NativeError`. */
export function linkInfo(link: BpfLink): BpfLinkInfo {
  return readLinkInfo(fdOf(link), `the BPF link ${link.id}`);
}

/** The link that is pinned there; undefined when nothing is. Throws `NativeError`. */
export function openPinnedLink(path: string): BpfLink | undefined {
  const fd = openPin(path);
  return fd === undefined ? undefined : new KernelLink(fd, `the BPF link pinned at ${path}`);
}
