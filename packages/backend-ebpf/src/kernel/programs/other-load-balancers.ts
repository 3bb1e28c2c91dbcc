import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { HostError, type IpFamily, type Logger } from '@switchyard/core';
import {
  type AttachedProgram,
  type CgroupHook,
  isBpffs,
  listPins,
  openMapById,
  openPinnedLink,
  openProgramById,
  queryCgroup,
} from '@switchyard/native';

/** A program of somebody else where ours are. */
export interface OtherProgram {
  readonly hook: CgroupHook;
  /** At most 15 characters, as the kernel keeps it. */
  readonly name: string;
  readonly id: number;
  /** Folder of the cgroup where it was seen. */
  readonly cgroup: string;
  /** Whose it is; undefined where the name says nothing: it may do something else altogether. */
  readonly owner: string | undefined;
}

/** What is known by the names of its programs. The kernel keeps 15 characters. */
const owners: readonly (readonly [pattern: RegExp, owner: string])[] = [
  [/^cil_sock|^sock[46]_(connect|sendmsg|recvmsg|getpeer)/, 'Cilium (kube-proxy replacement or socket load balancing)'],
  [/^cali(co)?_(connect|sendmsg|recvmsg)/, 'Calico (connect-time load balancing)'],
];

/** Hooks at which connections are led elsewhere. */
const leadingHooks: readonly CgroupHook[] = ['connect4', 'connect6', 'sendmsg4', 'sendmsg6'];

/** Where it is looked for, and what is ours. */
export interface Surroundings {
  /** Folder of cgroup2 at which ours are, or are to be. */
  readonly cgroup: string;
  /** Ids of our own programs, of both families. */
  readonly isOurs: (programId: number) => boolean;
}

/** How far below the cgroup it is looked: slices of systemd, and the pods' own. */
const depth = 2;
/** More cgroups than this are not looked at. */
const maxCgroups = 500;

/**
 * Programs of others at the cgroup, above it and a little below. Links of cgroups compose: both would run, and what one of them
 * rewrote the other would see.
 */
export function findOtherPrograms(
  { cgroup, isOurs }: Surroundings,
  options: { readonly isDeep: boolean },
): readonly OtherProgram[] {
  const found: OtherProgram[] = [];
  const seen = new Set<string>();
  const look = (folder: string, isEffective: boolean): void => {
    for (const hook of leadingHooks) {
      for (const program of query(folder, hook, isEffective)) {
        if (isOurs(program.id) || seen.has(`${hook} ${program.id}`)) continue;
        seen.add(`${hook} ${program.id}`);
        found.push({ hook, name: program.name, id: program.id, cgroup: folder, owner: ownerOf(program, hook) });
      }
    }
  };
  look(cgroup, true);
  if (options.isDeep) for (const folder of foldersBelow(cgroup)) look(folder, false);
  return found;
}

/** Whose program this is, by its name; ours by a map that only ours have. */
export function ownerOf({ name, id }: Pick<AttachedProgram, 'name' | 'id'>, hook: CgroupHook): string | undefined {
  const known = owners.find(([pattern]) => pattern.test(name));
  if (known !== undefined) return known[1];
  return name === hook && usesOurMaps(id) ? 'another Switchyard' : undefined;
}

/** What an operator is told of programs whose owner is known. */
export function refusalText({ owner, name, hook, cgroup }: OtherProgram): string {
  const next =
    owner === 'another Switchyard'
      ? 'end it with --cleanup and its own --switchyard-ebpf-bpffs, or give this one another --switchyard-ebpf-cgroup'
      : 'disable it there, or run this node with --proxy-mode nftables';
  return `${owner} does load balancing at sockets already (program ${name} at ${hook} of the cgroup ${cgroup}): ${next}`;
}

function usesOurMaps(programId: number): boolean {
  try {
    using program = openProgramById(programId);
    const names = new Set(program?.mapIds.map(nameOfMap));
    return names.has('frontends') && names.has('slots');
  } catch {
    return false; // it has a map of a kind that ours never have
  }
}

function nameOfMap(id: number): string | undefined {
  using map = openMapById(id);
  return map?.shape.name;
}

/** A cgroup may go at any moment; one that cannot be asked has nothing to say. */
function query(folder: string, hook: CgroupHook, isEffective: boolean): readonly AttachedProgram[] {
  try {
    return queryCgroup(folder, hook, { isEffective });
  } catch {
    return [];
  }
}

function foldersBelow(cgroup: string): readonly string[] {
  const found: string[] = [];
  let level = [cgroup];
  for (let below = 0; below < depth && found.length < maxCgroups; below++) {
    level = level.flatMap(subfolders).slice(0, maxCgroups - found.length);
    found.push(...level);
  }
  return found;
}

function subfolders(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
}

/** Ids of the programs in all links that are pinned below our folder in a bpffs: of both families, and of all versions. */
export function ourPrograms(bpffs: string): ReadonlySet<number> {
  const root = join(bpffs, 'switchyard');
  const folders = isBpffs(bpffs) ? listPins(root) : [];
  return new Set(folders.flatMap((folder) => programsIn(join(root, folder, 'links'))));
}

function programsIn(folder: string): readonly number[] {
  return listPins(folder).flatMap((name) => {
    using link = openPinnedLink(join(folder, name));
    return link === undefined ? [] : [link.programId];
  });
}

/** Where others may be, and who is told. */
export interface OthersOptions {
  readonly ipFamily: IpFamily;
  readonly bpffs: string;
  readonly logger: Logger;
}

/** Every so many looks it is looked for others: once in two seconds. */
const looksBetween = 8;

/** Other load balancers at our cgroup: refused before we begin, told of when they come later. */
export class OthersWatch {
  readonly #options: OthersOptions;
  readonly #told = new Set<string>();
  #looks = 0;

  constructor(options: OthersOptions) {
    this.#options = options;
  }

  /**
   * Throws `HostError` where another load balancer serves the cgroup's sockets. Not where our own programs are attached already: to
   * leave those as they are would help nobody.
   */
  refuse(cgroup: string): void {
    const { bpffs } = this.#options;
    if (ourPrograms(bpffs).size > 0) return this.#look(cgroup, true);
    const other = findOtherPrograms({ cgroup, isOurs: () => false }, { isDeep: true }).find(isOwned);
    if (other === undefined) return;
    throw new HostError('ebpf.other', `cannot attach programs to sockets: ${refusalText(other)}`);
  }

  /** Warns of others once each. Cheap most of the time. */
  notice(cgroup: string): void {
    if (this.#looks++ % looksBetween === 0) this.#look(cgroup, false);
  }

  #look(cgroup: string, isDeep: boolean): void {
    const { bpffs, ipFamily, logger } = this.#options;
    const ours = ourPrograms(bpffs);
    for (const other of findOtherPrograms({ cgroup, isOurs: (id) => ours.has(id) }, { isDeep })) {
      const key = `${other.hook} ${other.id}`;
      if (this.#told.has(key)) continue;
      this.#told.add(key);
      const { hook, name, owner } = other;
      if (isOwned(other)) {
        const text = 'another load balancer is at the sockets: connections go where the first of the two leads them';
        logger.warn(text, { ipFamily, owner, hook, name, cgroup });
      } else logger.info('a program of somebody else is at the sockets', { ipFamily, hook, name, cgroup });
    }
  }
}

function isOwned(other: OtherProgram): boolean {
  return other.owner !== undefined;
}
