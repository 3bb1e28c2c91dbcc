import { NativeError } from '../native-error.ts';
import { loadBpfAddon } from './bpf-addon.ts';

/** Maps the memory of an array. Throws `NativeError`. */
export function mapMemory(fd: number, bytes: number, name: string): Uint8Array {
  const memory = loadBpfAddon().mapMemory(fd, bytes);
  if (typeof memory === 'number') throw mapFailure(-memory, name);
  return new Uint8Array(memory);
}

function mapFailure(errno: number, name: string): Error {
  return new NativeError(`cannot map the memory of the BPF map ${name}`, { errno, syscall: 'mmap' });
}

/** Gives mapped memory back. All views of it have no bytes from now on. */
export function unmapMemory(memory: Uint8Array): void {
  loadBpfAddon().unmapMemory(memory.buffer as ArrayBuffer); // made above
}
