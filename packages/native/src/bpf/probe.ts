import { messageOf } from '@switchyard/core';
import { loadBpfAddon } from './bpf-addon.ts';
import { loadEmbedded } from './load-object.ts';
import { findMount } from './mounts.ts';
import { netnsCookie } from './info.ts';
import { createMap } from './open-map.ts';
import type { BpfMap, BpfMapShape } from './types.ts';

/** Result of trying one ability of the kernel. */
export type BpfAbility = { readonly status: 'usable' } | { readonly status: 'unusable'; readonly reason: string };

/** Abilities that are tried. */
export type BpfAbilityName =
  /** bpf(2) itself: making maps; without it nothing else works. */
  | 'maps'
  /** Arrays as memory (Linux 5.5). */
  | 'mmap'
  /** Hooks of sockets, with the network namespace's cookie (Linux 5.7). */
  | 'socketHooks'
  /** Hooks of getpeername (Linux 5.8). */
  | 'getpeername'
  /** The cookie of a network namespace for user space (Linux 5.14). */
  | 'netnsCookie'
  /** Programs of type tc. */
  | 'tc'
  /** Connection tracking entries with NAT (Linux 6.1.2). */
  | 'conntrackNat';

/** Abilities of this machine's kernel. */
export interface BpfProbe {
  readonly abilities: Readonly<Record<BpfAbilityName, BpfAbility>>;
  /** Where cgroup2 is mounted; undefined when it is not. */
  readonly cgroup2: string | undefined;
}

/** Tries each ability that was not usable before (30 ms for all); leaves nothing. Throws `NativeMissingError`. */
export function probeBpf(): BpfProbe {
  loadBpfAddon();
  return {
    abilities: {
      maps: attempt('maps', () => useMap({ ...shape, type: 'hash', noPrealloc: true })),
      mmap: attempt('mmap', () => useMap({ ...shape, type: 'array', mmapable: true }, (map) => map.values())),
      socketHooks: attempt('socketHooks', () => tryProgram('hooks', 'hooks')),
      getpeername: attempt('getpeername', () => tryProgram('hooks', 'getpeername')),
      netnsCookie: attempt('netnsCookie', () => netnsCookie()),
      tc: attempt('tc', () => tryProgram('hooks', 'packets')),
      conntrackNat: attempt('conntrackNat', () => tryProgram('conntrack', 'conntrack_nat')),
    },
    cgroup2: findMount('cgroup2'),
  };
}

/** Whether a hook can answer with another error than EPERM (Linux 5.18). The first call takes some milliseconds. */
export function hasSetRetval(): boolean {
  return attempt('setRetval', () => tryProgram('hooks', 'set_retval')).status === 'usable';
}

const shape = { name: 'swy_probe', keySize: 4, valueSize: 8, maxEntries: 1 } as const;
const hooks = ['hooks', 'getpeername', 'set_retval', 'packets'] as const;

/** Usable ones: a kernel keeps its abilities, and programs take their time to load. */
const known = new Set<BpfAbilityName | 'setRetval'>();

function attempt(ability: BpfAbilityName | 'setRetval', act: () => unknown): BpfAbility {
  try {
    if (!known.has(ability)) act();
    known.add(ability);
    return { status: 'usable' };
  } catch (error) {
    return { status: 'unusable', reason: messageOf(error) };
  }
}

function useMap(shape: BpfMapShape, use?: (map: BpfMap) => void): void {
  using map = createMap(shape);
  use?.(map);
}

function tryProgram(object: 'hooks' | 'conntrack', program: string): void {
  const skip = object === 'hooks' ? hooks.filter((name) => name !== program) : [];
  using _ = loadEmbedded(`probe-${object}`, { skip });
}
