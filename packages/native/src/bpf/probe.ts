import { messageOf } from '@switchyard/core';
import { tcxAttachTypes } from './attach-types.ts';
import { loadBpfAddon } from './bpf-addon.ts';
import { Attribute, bpfError, tryBpf } from './call.ts';
import { fdOf } from './kernel-program.ts';
import { loadBpfBytes } from './load-object.ts';
import { findMount, isBpffs } from './mounts.ts';
import { netnsCookie } from './namespaces.ts';
import { createMap } from './open-map.ts';
import type { BpfMapShape, BpfObject } from './types.ts';

/** Whether the kernel can do something, found out by trying. */
export type BpfAbility = { readonly status: 'usable' } | { readonly status: 'unusable'; readonly reason: string };

/** Abilities that are tried. */
export type BpfAbilityName =
  /** bpf(2) itself: making maps; without it nothing else works. */
  | 'maps'
  /** Arrays as memory (Linux 5.5). */
  | 'mmap'
  /** Batches on hash tables (Linux 5.6); without them elements are written one by one. */
  | 'batch'
  /** Hooks of sockets, with the network namespace's cookie (Linux 5.7). */
  | 'socketHooks'
  /** Hooks of getpeername (Linux 5.8). */
  | 'getpeername'
  /** A refusal other than EPERM (Linux 5.18). */
  | 'setRetval'
  /** The cookie of a network namespace for user space (Linux 5.14). */
  | 'netnsCookie'
  /** Programs of type tc. */
  | 'tc'
  /** Links to interfaces (Linux 6.6); without them clsact is used. */
  | 'tcx'
  /** Connection tracking entries with NAT (Linux 6.1.2). */
  | 'conntrackNat'
  /** Ending UDP sockets (Linux 6.5). */
  | 'socketDestroy';

/** What this machine's kernel can do. */
export interface BpfProbe {
  readonly abilities: Readonly<Record<BpfAbilityName, BpfAbility>>;
  /** Where cgroup2 is mounted; undefined when it is not. */
  readonly cgroup2: string | undefined;
  /** Where a bpffs is mounted; undefined when none is. */
  readonly bpffs: string | undefined;
}

/**
 * Finds out by trying, never by the kernel's version; takes some 40 ms. Nothing is attached and nothing stays. Throws
 * `NativeMissingError`.
 */
export function probeBpf(): BpfProbe {
  loadBpfAddon();
  return {
    abilities: {
      maps: attempt(() => useMap(hash, () => undefined)),
      mmap: attempt(() => useMap(array, (map) => map.values())),
      batch: attempt(tryBatch),
      socketHooks: attempt(() => tryProgram('hooks', 'hooks')),
      getpeername: attempt(() => tryProgram('hooks', 'getpeername')),
      setRetval: attempt(() => tryProgram('hooks', 'set_retval')),
      netnsCookie: attempt(() => netnsCookie()),
      tc: attempt(() => tryProgram('hooks', 'tcx')),
      tcx: attempt(tryTcx),
      conntrackNat: attempt(() => tryProgram('conntrack', 'conntrack_nat')),
      socketDestroy: attempt(() => tryProgram('sockets', 'sock_destroy')),
    },
    cgroup2: findMount('cgroup2'),
    bpffs: isBpffs('/sys/fs/bpf') ? '/sys/fs/bpf' : findMount('bpf'),
  };
}

/** Whether a hook can answer with another error than EPERM (Linux 5.18): `setRetval` of `probeBpf` alone, in some milliseconds. */
export function hasSetRetval(): boolean {
  return attempt(() => tryProgram('hooks', 'set_retval')).status === 'usable';
}

const hash: BpfMapShape = {
  name: 'swy_probe',
  type: 'hash',
  keySize: 4,
  valueSize: 8,
  maxEntries: 1,
  noPrealloc: true,
};
const array: BpfMapShape = {
  name: 'swy_probe',
  type: 'array',
  keySize: 4,
  valueSize: 8,
  maxEntries: 1,
  mmapable: true,
};
const hooks = ['hooks', 'getpeername', 'set_retval', 'tcx'] as const;
const noInterface = 0x7f_ff_ff_ff;
const ENODEV = 19;

function attempt(act: () => unknown): BpfAbility {
  try {
    act();
    return { status: 'usable' };
  } catch (error) {
    return { status: 'unusable', reason: messageOf(error) };
  }
}

function useMap(shape: BpfMapShape, use: (map: ReturnType<typeof createMap>) => void): void {
  using map = createMap(shape);
  use(map);
}

/** Not `updateBatch`, which does without. */
function tryBatch(): void {
  useMap(hash, (map) => {
    const attribute = new Attribute(56).u32(32, 1).u32(36, fdOf(map));
    const pointers = [16, new Uint8Array(4), 24, new Uint8Array(8)];
    const result = tryBpf('MAP_UPDATE_BATCH', { attempt: '', attribute, pointers });
    if (result < 0) throw bpfError('MAP_UPDATE_BATCH', 'cannot write a batch', -result);
  });
}

function tryProgram(object: 'hooks' | 'conntrack' | 'sockets', program: string): void {
  using _ = loadProgram(object, program);
}

function loadProgram(object: 'hooks' | 'conntrack' | 'sockets', program: string): BpfObject {
  const skip = object === 'hooks' ? hooks.filter((name) => name !== program) : [];
  return loadBpfBytes(loadBpfAddon().probeObject(object), `probe-${object}`, { skip });
}

/** A kernel with tcx looks for the interface first; one without does not know the kind of link. */
function tryTcx(): void {
  using object = loadProgram('hooks', 'tcx');
  const program = object.programs.get('tcx');
  if (program === undefined) return;
  const attribute = new Attribute(48).u32(0, fdOf(program)).u32(4, noInterface).u32(8, tcxAttachTypes.ingress);
  const result = tryBpf('LINK_CREATE', { attempt: '', attribute });
  if (result !== -ENODEV) throw bpfError('LINK_CREATE', 'cannot make tcx links', -result);
}
