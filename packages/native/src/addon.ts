import { createRequire } from 'node:module';
import { HostError } from '@switchyard/core';

/** The functions of the compiled addon. Failures are negative errno numbers. */
export interface Addon {
  openNetlink(
    ...options: readonly [
      protocol: number,
      netns: string,
      groups: readonly number[],
      ignoredPortIds: readonly number[],
      sendBuffer: number,
      receiveBuffer: number,
    ]
  ): { readonly fd: number; readonly portId: number; readonly error: number; readonly syscall: string };
  send(fd: number, bytes: Uint8Array): number;
  receive(fd: number, buffer: Uint8Array): number;
  close(fd: number): void;
  trimMemory(): void;
}

/** The compiled addon is not where it should be, or does not fit this machine. */
export class NativeMissingError extends HostError {
  override readonly name = 'NativeMissingError';
}

const fileName = 'switchyard_native.node';
/** Beside an app's bundle, else where CMake leaves it. */
const places: readonly URL[] = [
  new URL(`./${fileName}`, import.meta.url),
  new URL(`../build/${fileName}`, import.meta.url),
];

let loaded: Addon | undefined;

/** The addon, loaded once. Throws `NativeMissingError`. */
export function loadAddon(candidates: readonly URL[] = places): Addon {
  if (candidates !== places) return load(candidates);
  loaded ??= load(candidates);
  return loaded;
}

function load(candidates: readonly URL[]): Addon {
  const require = createRequire(import.meta.url);
  for (const { pathname } of candidates) {
    try {
      return require(decodeURIComponent(pathname)) as Addon; // the file is ours
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') continue;
      const said = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
      throw new NativeMissingError(
        'native.unusable',
        `cannot load the native addon ${fileName}: ${said}; build it for this machine with ./dev build`,
        { cause: error },
      );
    }
  }
  throw new NativeMissingError(
    'native.missing',
    `the native addon ${fileName} is missing: build it with ./dev build, or use a transport that needs none`,
  );
}
