import type { IpFamily } from '@switchyard/core';
import { loadAddon } from './addon.ts';
import { NativeError } from './native-error.ts';
import { addressFamilies } from './rtnetlink/device-reader.ts';

/** SOCK_STREAM, SOCK_DGRAM. */
const types = { TCP: 1, UDP: 2 } as const;

/** A socket to open. */
export interface NamespaceSocketOptions {
  /** Path of the network namespace, such as `/proc/PID/ns/net`. */
  readonly netns: string;
  readonly ipFamily: IpFamily;
  readonly protocol: keyof typeof types;
}

/**
 * Opens a non-blocking socket in another network namespace, where it stays, and returns its descriptor, which the caller owns. Needs
 * CAP_SYS_ADMIN. Throws `NativeError`, or `NativeMissingError` where the addon was not built.
 */
export function openNamespaceSocket({ netns, ipFamily, protocol }: NamespaceSocketOptions): number {
  const { fd, error, syscall } = loadAddon().openSocket(netns, addressFamilies[ipFamily], types[protocol]);
  if (error === 0) return fd;
  const next = syscall === 'setns' ? 'the process needs CAP_SYS_ADMIN' : '';
  throw new NativeError(
    `cannot open a ${protocol} socket in the network namespace ${netns}`,
    { errno: error, syscall },
    next,
  );
}
