import { constants } from 'node:os';
import { Attribute, bpfError, tryBpf } from './call.ts';
import { openProgramById } from './kernel-program.ts';

const { EINVAL, ENOENT, ENOSPC } = constants.errno;

/** A program that is attached somewhere. */
export interface AttachedProgram {
  readonly id: number;
  /** As the kernel has it, at most 15 characters; empty where the program went away meanwhile. */
  readonly name: string;
  /** 16 hexadecimal digits; empty as `name`. */
  readonly tag: string;
  /** Id of the link that attaches it; 0 without a link, and for cgroups, where the kernel does not report it. */
  readonly linkId: number;
}

export interface ProgramQuery {
  /** Descriptor of a cgroup, or number of an interface. */
  readonly target: number;
  readonly attachType: number;
  readonly flags: number;
  readonly attempt: string;
  readonly netns?: string | undefined;
}

/** In the order in which they run. Throws `NativeError`. */
export function queryPrograms(query: ProgramQuery): readonly AttachedProgram[] {
  for (let room = 64; ; room *= 4) {
    const result = tryQuery(query, room);
    if (typeof result === 'object') return result.map(([id, linkId]) => describe(id, linkId));
    // Programs of a hook can be counted, so this ends.
    if (result !== -ENOSPC || room > 65_536) throw bpfError('PROG_QUERY', query.attempt, -result);
  }
}

function tryQuery(query: ProgramQuery, room: number): readonly (readonly [id: number, linkId: number])[] | number {
  const { target, attachType, flags, attempt, netns } = query;
  const ids = new Uint32Array(room);
  const linkIds = new Uint32Array(room);
  const attribute = new Attribute(64).u32(0, target).u32(4, attachType).u32(8, flags).u32(24, room);
  const pointers: (number | Uint8Array)[] = [16, new Uint8Array(ids.buffer)];
  // Cgroups do not know the field with the ids of links, and refuse it on some kernels.
  if (isTcx(attachType)) pointers.push(40, new Uint8Array(linkIds.buffer));
  const result = tryBpf('PROG_QUERY', { attempt, attribute, pointers, netns });
  if (result === -ENOENT || (result === -EINVAL && isTcx(attachType))) return []; // none, or a kernel without tcx
  if (result < 0) return result;
  return Array.from(ids.subarray(0, attribute.getU32(24)), (id, index) => [id, linkIds[index] ?? 0] as const);
}

function isTcx(attachType: number): boolean {
  return attachType >= 46;
}

function describe(id: number, linkId: number): AttachedProgram {
  using program = openProgramById(id);
  return { id, linkId, name: program?.name ?? '', tag: program?.tag ?? '' };
}
