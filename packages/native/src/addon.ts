import { createRequire } from 'node:module';
import { HostError } from '@switchyard/core';

/** A descriptor, or the failed system call: `error` is an errno, 0 on success. */
export interface OpenedFile {
  readonly fd: number;
  readonly error: number;
  readonly syscall: string;
}

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
  ): OpenedFile & { readonly portId: number };
  /** Numbers of socket(2): AF_INET is 2, AF_INET6 10; SOCK_STREAM is 1, SOCK_DGRAM 2. */
  openSocket(netns: string, family: number, type: number): OpenedFile;
  makeNamespace(): Promise<OpenedFile>;
  send(fd: number, bytes: Uint8Array): number;
  receive(fd: number, buffer: Uint8Array): number;
  /** Calls `callback` once when `fd` can be read, unless the result is called before. `fd` must stay open until then. */
  awaitReadable(fd: number, callback: () => void): number | (() => void);
  close(fd: number): void;
  trimMemory(): void;
}

/** The compiled addon is not where it should be, or does not fit this machine. */
export class NativeMissingError extends HostError {
  override readonly name = 'NativeMissingError';
}

/** File of an addon, with the advice for a machine that lacks it or one of its libraries. */
export interface AddonFile {
  readonly name: string;
  /** Ends a sentence that says that the file is missing. */
  readonly whatNext: string;
  /** Shared libraries it needs that a machine may lack: beginnings of their names, to Debian's package. */
  readonly libraries: ReadonlyMap<string, string>;
}

const file: AddonFile = {
  name: 'switchyard_native.node',
  whatNext: 'or use a build that has it',
  libraries: new Map(),
};

/** Places of an addon's file: beside an app's bundle, then CMake's build directory. */
export function addonPlaces(name: string): readonly URL[] {
  return [new URL(`./${name}`, import.meta.url), new URL(`../build/${name}`, import.meta.url)];
}

let loaded: Addon | undefined;

/** The addon, loaded once. Throws `NativeMissingError`. */
export function loadAddon(candidates?: readonly URL[]): Addon {
  if (candidates !== undefined) return loadAddonFile(file, candidates) as Addon; // by the file's name
  loaded ??= loadAddonFile(file, addonPlaces(file.name)) as Addon;
  return loaded;
}

/** Loads an addon's file and returns its exports. Throws `NativeMissingError`. */
export function loadAddonFile(addon: AddonFile, candidates: readonly URL[]): unknown {
  const require = createRequire(import.meta.url);
  for (const { pathname } of candidates) {
    try {
      return require(decodeURIComponent(pathname));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') continue;
      const said = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
      throw unusable(addon, said, error);
    }
  }
  throw new NativeMissingError(
    'native.missing',
    `the native addon ${addon.name} is missing: build it with ./dev build, ${addon.whatNext}`,
  );
}

function unusable(addon: AddonFile, said: string, cause: unknown): NativeMissingError {
  const attempt = `cannot load the native addon ${addon.name}: ${said}`;
  for (const [library, debianPackage] of addon.libraries) {
    if (!said.startsWith(library)) continue;
    return new NativeMissingError(
      'native.library',
      `${attempt}; install the shared library it needs (Debian: ${debianPackage})`,
      { cause },
    );
  }
  return new NativeMissingError('native.unusable', `${attempt}; build it for this machine with ./dev build`, { cause });
}

/** Returns freed memory that glibc keeps to the kernel, 4 to 10 MB, in about 1 ms. Throws `NativeMissingError`. */
export function trimMemory(): void {
  loadAddon().trimMemory();
}
