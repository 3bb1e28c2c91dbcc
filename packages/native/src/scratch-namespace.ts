import { abortable } from '@switchyard/core';
import { type Addon, loadAddon, type OpenedFile } from './addon.ts';
import { NativeError } from './native-error.ts';

/** A network namespace for trials: rules loaded into it affect no packet of this machine. */
export interface ScratchNamespace extends Disposable {
  /** For `NetlinkOptions.netns` and the like, until it is disposed. */
  readonly path: string;
}

/** Makes a network namespace, which may take seconds. Rejects with `NativeError`, `NativeMissingError`, and the reason of the signal. */
export async function openScratchNamespace(
  signal: AbortSignal,
  addon: Pick<Addon, 'makeNamespace' | 'close'> = loadAddon(),
): Promise<ScratchNamespace> {
  signal.throwIfAborted();
  const making = addon.makeNamespace();
  try {
    const { fd, error, syscall } = await abortable(making, signal);
    if (error !== 0) throw new NativeError('cannot make a network namespace for a trial', { errno: error, syscall });
    return new OpenNamespace(addon, fd);
  } catch (error) {
    if (signal.aborted) void making.then((late: OpenedFile) => (late.error === 0 ? addon.close(late.fd) : undefined));
    throw error;
  }
}

class OpenNamespace implements ScratchNamespace {
  readonly path: string;
  readonly #addon: Pick<Addon, 'close'>;
  #fd: number | undefined;

  constructor(addon: Pick<Addon, 'close'>, fd: number) {
    this.path = `/proc/self/fd/${fd}`;
    this.#addon = addon;
    this.#fd = fd;
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined) this.#addon.close(this.#fd);
    this.#fd = undefined;
  }
}
