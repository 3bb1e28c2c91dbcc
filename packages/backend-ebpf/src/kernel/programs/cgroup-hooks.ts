import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  type BpfLink,
  type BpfProgram,
  type CgroupHook,
  linkCgroup,
  linkInfo,
  openPinnedLink,
  pin,
} from '@switchyard/native';
import { asError, HostError } from '@switchyard/core';
import { FolderWatch } from './folder-watch.ts';
import type { PinFolders } from './pin-folders.ts';
import { isSameProgram } from './same-program.ts';

/** Order of attaching: hooks that show a socket its frontend first, or it hears from an unknown address. */
const order: readonly CgroupHook[] = [
  'recvmsg4',
  'recvmsg6',
  'getpeername4',
  'getpeername6',
  'sendmsg4',
  'sendmsg6',
  'connect4',
  'connect6',
];

/** Hooks in the order of attaching; the reverse is that of detaching. */
export function inOrder(hooks: readonly CgroupHook[]): readonly CgroupHook[] {
  return order.filter((hook) => hooks.includes(hook));
}

/** Names of links in the order of detaching: hooks first, then the others. */
export function detachOrder(paths: readonly string[]): readonly string[] {
  const rank = (path: string): number => order.indexOf(basename(path) as CgroupHook); // -1 for others
  return [...paths].sort((a, b) => rank(b) - rank(a));
}

export interface AttachedHook {
  readonly hook: CgroupHook;
  readonly linkId: number;
  readonly programId: number;
}

export interface HookPlace {
  readonly pins: PinFolders;
  readonly cgroup: string;
}

/** Makes a program the one at a hook: updates the pinned link of any version, or makes one. Idempotent. */
export function ensureHook(
  { pins, cgroup }: HookPlace,
  hook: CgroupHook,
  program: BpfProgram,
): { readonly attached: AttachedHook; readonly writes: number } {
  const path = join(pins.links, hook);
  let writes = adoptLink(pins, hook);
  using pinned = openPinnedLink(path);
  if (pinned !== undefined && linkInfo(pinned).cgroupId === cgroupIdOf(cgroup)) {
    if (!isSameProgram(pinned.programId, program)) {
      pinned.update(program);
      writes++;
    }
    return { attached: { hook, linkId: pinned.id, programId: pinned.programId }, writes };
  }
  using link = linkCgroup(program, cgroup, hook);
  pin(link, path, { replace: true });
  pinned?.detach(); // the new one is attached
  writes++;
  return { attached: { hook, linkId: link.id, programId: link.programId }, writes };
}

/** Updates the link of a hook, if this version has one. For grown maps: changes nothing else. */
export function updateHook(pins: PinFolders, hook: CgroupHook, program: BpfProgram): AttachedHook | undefined {
  using link = openPinnedLink(join(pins.links, hook));
  if (link === undefined || !linkInfo(link).isAttached) return undefined;
  link.update(program);
  return { hook, linkId: link.id, programId: link.programId };
}

/** Moves a link of another version to this version's folder, unless this version has one. */
function adoptLink(pins: PinFolders, hook: CgroupHook): number {
  const path = join(pins.links, hook);
  using ours = openPinnedLink(path);
  if (ours !== undefined) return 0;
  for (const folder of pins.others()) {
    const other = join(folder, 'links', hook);
    using link = openPinnedLink(other);
    if (link === undefined) continue;
    pins.move(other, path);
    return 1;
  }
  return 0;
}

/** Finds what other processes did to attached hooks. Holds their links open, so that a look takes one system call for each. */
export class HookWatch implements Disposable {
  readonly #pins: PinFolders;
  readonly #folder = new FolderWatch();
  readonly #held = new Map<CgroupHook, BpfLink>();

  constructor(pins: PinFolders) {
    this.#pins = pins;
  }

  /** Throws `NativeError`. */
  faults(attached: readonly AttachedHook[]): readonly string[] {
    const ofPins = this.#folder.faults(this.#pins.links, () => attached.flatMap((one) => this.#pinFaults(one)));
    return [...ofPins, ...attached.flatMap((one) => this.#linkFaults(one))];
  }

  /** The links of the last `faults`. */
  get held(): readonly BpfLink[] {
    return [...this.#held.values()];
  }

  [Symbol.dispose](): void {
    for (const link of this.#held.values()) link[Symbol.dispose]();
    this.#held.clear();
    this.#folder.forget();
  }

  #pinFaults({ hook, linkId }: AttachedHook): readonly string[] {
    const link = openPinnedLink(join(this.#pins.links, hook));
    this.#held.get(hook)?.[Symbol.dispose]();
    this.#held.delete(hook);
    if (link === undefined) return [`link ${hook} unpinned`];
    this.#held.set(hook, link);
    return link.id === linkId ? [] : [`link ${hook} replaced`];
  }

  #linkFaults({ hook, linkId, programId }: AttachedHook): readonly string[] {
    const link = this.#held.get(hook);
    if (link?.id !== linkId) return []; // its pin has the fault
    const info = linkInfo(link);
    if (!info.isAttached) return [`link ${hook} detached`];
    return info.programId === programId ? [] : [`link ${hook} has another program`];
  }
}

/** Detaches the pinned link, although other processes may hold it. Throws `NativeError`. */
export function detachPinned(path: string): void {
  using link = openPinnedLink(path);
  link?.detach();
}

/** The kernel identifies a cgroup by the inode of its folder. */
function cgroupIdOf(cgroup: string): bigint {
  try {
    return statSync(cgroup, { bigint: true }).ino;
  } catch (error) {
    throw new HostError('ebpf.cgroup', `cannot find the cgroup ${cgroup}: ${asError(error).message}`, { cause: error });
  }
}
