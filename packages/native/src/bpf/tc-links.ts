import { constants } from 'node:os';
import { ENOTSUPP } from '../native-error.ts';
import { Attribute, bpfError, tryBpf } from './call.ts';
import { attachClsact } from './clsact.ts';
import { KernelLink } from './kernel-link.ts';
import { fdOf } from './kernel-program.ts';
import { type AttachedProgram, queryPrograms } from './query.ts';
import type { BpfLink, BpfProgram } from './types.ts';

const { EINVAL, EOPNOTSUPP } = constants.errno;

/** Which packets of an interface a program of type tc sees. */
export type TcDirection = 'ingress' | 'egress';

/** Numbers of the hooks of interfaces in `enum bpf_attach_type`. */
const tcxAttachTypes: Readonly<Record<TcDirection, number>> = { ingress: 46, egress: 47 };

/** Place of a program at an interface. */
export interface TcPlace {
  /** The interface's number in its namespace. */
  readonly ifindex: number;
  /** Path of the interface's network namespace; default: the process's own. */
  readonly netns?: string | undefined;
  /** Default: ingress. */
  readonly direction?: TcDirection;
  /** Priority of a clsact filter, 1 to 65535, lowest first. Programs at one interface need one each. Default: 0x5377. */
  readonly priority?: number;
}

/** How programs are attached to interfaces: by links (Linux 6.6), or as filters of the clsact queueing discipline. */
export type TcMechanism = 'tcx' | 'clsact';

/** How a program is attached to an interface. */
export interface TcOptions {
  /** Default: tcx where the kernel has it, else clsact. */
  readonly mechanism?: TcMechanism;
}

/**
 * A program that is attached to an interface. With `tcx` it is a link like all others. With `clsact` it stays until `detach`, even when
 * this is disposed and the process ends; it cannot be pinned; attaching again replaces it.
 */
export interface TcLink extends BpfLink {
  readonly mechanism: TcMechanism;
}

class TcxLink extends KernelLink implements TcLink {
  readonly mechanism = 'tcx';
}

/** Attaches a program of type tc to an interface. Throws `NativeError`. */
export function attachTc(program: BpfProgram, place: TcPlace, { mechanism }: TcOptions = {}): TcLink {
  if (mechanism === 'clsact') return attachClsact(program, place);
  const { ifindex, netns, direction = 'ingress' } = place;
  const attribute = new Attribute(48).u32(0, fdOf(program)).u32(4, ifindex).u32(8, tcxAttachTypes[direction]);
  const where = `${direction} of the interface ${ifindex}${netns === undefined ? '' : ` in ${netns}`}`;
  const attempt = `cannot attach the program ${program.name} to ${where}`;
  const fd = tryBpf('LINK_CREATE', { attempt, attribute, netns });
  if (fd >= 0) return new TcxLink(fd, `the BPF link at ${where}`);
  if (mechanism === undefined && lacksTcx(-fd)) return attachClsact(program, place);
  throw bpfError('LINK_CREATE', attempt, -fd);
}

/** Whether a kernel without tcx answers so. */
export function lacksTcx(errno: number): boolean {
  return errno === EINVAL || errno === ENOTSUPP || errno === EOPNOTSUPP;
}

/** The programs that are attached to an interface by tcx, in the order in which they run. Throws `NativeError`. */
export function queryTcx({ ifindex, netns, direction = 'ingress' }: TcPlace): readonly AttachedProgram[] {
  const attempt = `cannot list the programs at ${direction} of the interface ${ifindex}`;
  return queryPrograms({ target: ifindex, attachType: tcxAttachTypes[direction], flags: 0, attempt, netns });
}
