import { closeSync, readSync } from 'node:fs';
import { NativeError } from '../native-error.ts';
import { iteratorAttachType } from './attach-types.ts';
import { Attribute, callBpf } from './call.ts';
import { fdOf } from './kernel-program.ts';
import type { BpfProgram } from './types.ts';

/** Where an iterator looks. */
export interface IteratorOptions {
  /** Path of the network namespace whose sockets are looked at; default: the process's own. */
  readonly netns?: string;
}

/**
 * Runs a program of type iterator (Linux 5.8) once over everything it is for, such as all UDP sockets of a network namespace
 * (`iter/udp`), and returns the text it wrote. Throws `NativeError`.
 */
export function runIterator(program: BpfProgram, { netns }: IteratorOptions = {}): string {
  const attempt = `cannot run the iterator ${program.name}`;
  const linked = new Attribute(48).u32(0, fdOf(program)).u32(8, iteratorAttachType);
  const link = callBpf('LINK_CREATE', { attempt, attribute: linked });
  try {
    // The namespace counts when it is opened, not when it is read.
    const fd = callBpf('ITER_CREATE', { attempt, attribute: new Attribute(8).u32(0, link), netns });
    try {
      return readAll(fd, attempt);
    } finally {
      closeSync(fd);
    }
  } finally {
    closeSync(link);
  }
}

function readAll(fd: number, attempt: string): string {
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(1 << 16);
  let text = '';
  try {
    for (let length = readSync(fd, buffer); length > 0; length = readSync(fd, buffer)) {
      text += decoder.decode(buffer.subarray(0, length), { stream: true });
    }
  } catch (error) {
    const errno = Math.abs((error as NodeJS.ErrnoException).errno ?? 0);
    throw new NativeError(attempt, { errno, syscall: 'read' });
  }
  return text;
}
