import { closeSync } from 'node:fs';
import { Attribute, callBpf } from '../bpf/call.ts';
import { readInfo } from '../bpf/info.ts';
import { fdOf } from '../bpf/kernel-program.ts';
import type { BpfProgram } from '../bpf/types.ts';

/**
 * Lets the kernel count runs and time of all programs (Linux 5.8) until it is disposed; `runStatistics` reads them. It costs some
 * tens of nanoseconds for each run, which are part of the time. Throws `NativeError`.
 */
export function enableRunStats(): Disposable {
  const attempt = 'cannot switch on run-time statistics of BPF programs';
  let fd: number | undefined = callBpf('ENABLE_STATS', { attempt, attribute: new Attribute(4) });
  return {
    [Symbol.dispose]: () => {
      if (fd !== undefined) closeSync(fd);
      fd = undefined;
    },
  };
}

/** How often a program ran while statistics were on, and the nanoseconds of all runs together. Throws `NativeError`. */
export function runStatistics(program: BpfProgram): { readonly runs: bigint; readonly runTime: bigint } {
  const info = readInfo(fdOf(program), 208, `the BPF program ${program.name}`);
  return { runTime: info.getU64(192), runs: info.getU64(200) };
}
