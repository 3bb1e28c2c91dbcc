import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, HostError, type IpFamily, type Logger, type Millis, seconds, systemClock } from '@switchyard/core';
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

/** A program of another owner at our cgroup. */
export interface OtherProgram {
  readonly hook: CgroupHook;
  /** At most 15 characters, as the kernel keeps it. */
  readonly name: string;
  readonly id: number;
  /** Folder of the cgroup where it was seen. */
  readonly cgroup: string;
  /** Its owner; undefined for an unknown name: it may serve another purpose. */
  readonly owner: string | undefined;
}

/** Load balancers by the names of their programs. The kernel keeps 15 characters. */
const owners: readonly (readonly [pattern: RegExp, owner: string])[] = [
  [/^cil_sock|^sock[46]_(connect|sendmsg|recvmsg|getpeer)/, 'Cilium (kube-proxy replacement or socket load balancing)'],
  [/^cali(co)?_(connect|sendmsg|recvmsg)/, 'Calico (connect-time load balancing)'],
];

/** Hooks that change the destination of connections. */
const leadingHooks: readonly CgroupHook[] = ['connect4', 'connect6', 'sendmsg4', 'sendmsg6'];

/** The cgroup, and the ids of our own programs. */
export interface Surroundings {
  /** Folder of cgroup2 at which our programs are, or will be, attached. */
  readonly cgroup: string;
  /** Ids of our own programs, of both families. */
  readonly isOurs: (programId: number) => boolean;
}

/** Search depth below the cgroup: slices of systemd, and those of pods. */
const depth = 2;
/** Maximum number of searched cgroups. */
const maxCgroups = 500;

/** Programs of other owners at the cgroup, above it and `depth` below: each would see what the other wrote. */
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

/** Owner of a program by its name; another Switchyard's by two maps that only its programs have. */
export function ownerOf({ name, id }: Pick<AttachedProgram, 'name' | 'id'>, hook: CgroupHook): string | undefined {
  const known = owners.find(([pattern]) => pattern.test(name));
  if (known !== undefined) return known[1];
  return name === hook && usesOurMaps(id) ? 'another Switchyard' : undefined;
}

/** Error text for a program with a known owner. */
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
    return false; // it has a map of a type that our programs never have
  }
}

function nameOfMap(id: number): string | undefined {
  using map = openMapById(id);
  return map?.shape.name;
}

/** Empty for a cgroup that cannot be queried, because it may be deleted at any moment. */
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

/** Ids of the programs in all links pinned below our folder in a bpffs: of both families and all versions. */
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

export interface OthersOptions {
  readonly ipFamily: IpFamily;
  readonly bpffs: string;
  readonly logger: Logger;
  /** For tests; default: the system's. */
  readonly clock?: Pick<Clock, 'monotonic'>;
}

/** Shortest time between two searches of `notice`. */
const searchInterval: Millis = seconds(10);

/** Detects other load balancers at our cgroup: refuses to start beside one, and warns of one that starts later. */
export class OthersWatch {
  readonly #options: OthersOptions;
  readonly #told = new Set<string>();
  #searched = -Infinity;

  constructor(options: OthersOptions) {
    this.#options = options;
  }

  /** Throws `HostError` beside another load balancer; only warns if our own programs are attached already. */
  refuse(cgroup: string): void {
    const { bpffs } = this.#options;
    if (ourPrograms(bpffs).size > 0) return this.#look(cgroup, true);
    const other = findOtherPrograms({ cgroup, isOurs: () => false }, { isDeep: true }).find(isOwned);
    if (other === undefined) return;
    throw new HostError('ebpf.other', `cannot attach programs to sockets: ${refusalText(other)}`);
  }

  /** Warns once of each. Most calls do nothing. */
  notice(cgroup: string): void {
    const { clock = systemClock } = this.#options;
    const now = clock.monotonic();
    if (now - this.#searched < searchInterval) return;
    this.#searched = now;
    this.#look(cgroup, false);
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
        const text =
          'another load balancer is attached to the sockets: the first of the two chooses the endpoint of a connection';
        logger.warn(text, { ipFamily, owner, hook, name, cgroup });
      } else logger.info('another program is attached to the sockets', { ipFamily, hook, name, cgroup });
    }
  }
}

function isOwned(other: OtherProgram): boolean {
  return other.owner !== undefined;
}
