import { constants } from 'node:os';
import { HostError } from '@switchyard/core';

/** Errno of the kernel that no header declares: the operation is not supported, such as a batch on a map type without batches. */
export const ENOTSUPP = 524;

const names: ReadonlyMap<number, string> = new Map([
  ...Object.entries(constants.errno).map(([name, value]) => [value, name] as const),
  [ENOTSUPP, 'ENOTSUPP'],
]);

/** The kernel's name of an errno, such as `ENOENT`; `errno 999` for a number it has no name for. */
export function errnoName(errno: number): string {
  return names.get(errno) ?? `errno ${errno}`;
}

/** A system call failed. */
export class NativeError extends HostError {
  override readonly name: string = 'NativeError';
  /** Positive. */
  readonly errno: number;
  /** Such as `ENOBUFS`. */
  readonly errnoName: string;
  readonly syscall: string;

  constructor(attempt: string, failure: { readonly errno: number; readonly syscall: string }, next = '') {
    const symbol = errnoName(failure.errno);
    super(`native.${symbol}`, `${attempt}: ${failure.syscall} failed with ${symbol}${next === '' ? '' : `; ${next}`}`);
    this.errno = failure.errno;
    this.errnoName = symbol;
    this.syscall = failure.syscall;
  }
}
