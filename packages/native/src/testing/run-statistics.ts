import { closeSync } from 'node:fs';
import { Attribute, callBpf } from '../bpf/call.ts';

/**
 * Lets the kernel count runs and time of all programs (Linux 5.8) until it is disposed; `programInfo` reads them. It costs some
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
