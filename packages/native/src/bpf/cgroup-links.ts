import { closeSync, constants as fileConstants, openSync } from 'node:fs';
import { constants } from 'node:os';
import { NativeError } from '../native-error.ts';
import { Attribute, callBpf } from './call.ts';
import { KernelLink } from './kernel-link.ts';
import { fdOf, openProgramById } from './kernel-program.ts';
import type { BpfLink, BpfProgram, CgroupHook } from './types.ts';

/** Numbers of the hooks of sockets in `enum bpf_attach_type`. */
const cgroupAttachTypes: Readonly<Record<CgroupHook, number>> = {
  connect4: 10,
  connect6: 11,
  sendmsg4: 14,
  sendmsg6: 15,
  recvmsg4: 19,
  recvmsg6: 20,
  getpeername4: 29,
  getpeername6: 30,
};

/** Attaches a program to a hook of sockets in a cgroup2 folder and below, beside others. Throws `NativeError`. */
export function linkCgroup(program: BpfProgram, cgroupDir: string, hook: CgroupHook): BpfLink {
  return withFolder(cgroupDir, (cgroup) => {
    const attribute = new Attribute(16).u32(0, fdOf(program)).u32(4, cgroup).u32(8, cgroupAttachTypes[hook]);
    const attempt = `cannot attach the program ${program.name} to ${hook} of the cgroup ${cgroupDir}`;
    const fd = callBpf('LINK_CREATE', { attempt, attribute });
    return new KernelLink(fd, `the BPF link at ${hook} of the cgroup ${cgroupDir}`);
  });
}

/** A program that is attached at a hook. */
export interface AttachedProgram {
  readonly id: number;
  /** As the kernel has it, at most 15 characters; empty where the program went away meanwhile. */
  readonly name: string;
}

/** Options of a query for programs at a hook. */
export interface CgroupQueryOptions {
  /** Also those of the cgroups above, which run too. */
  readonly isEffective?: boolean;
}

/** The programs at a hook of a cgroup, in the order in which they run. Throws `NativeError`. */
export function queryCgroup(
  cgroupDir: string,
  hook: CgroupHook,
  options: CgroupQueryOptions = {},
): readonly AttachedProgram[] {
  return withFolder(cgroupDir, (target) => {
    const ids = new Uint32Array(maxPrograms);
    const attribute = new Attribute(64).u32(0, target).u32(4, cgroupAttachTypes[hook]).u32(24, ids.length);
    if (options.isEffective === true) attribute.u32(8, 1);
    const attempt = `cannot list the programs at ${hook} of the cgroup ${cgroupDir}`;
    callBpf('PROG_QUERY', { attempt, attribute, pointers: [16, new Uint8Array(ids.buffer)] });
    return Array.from(ids.subarray(0, attribute.getU32(24)), (id) => {
      using program = openProgramById(id);
      return { id, name: program?.name ?? '' };
    });
  });
}

/** A cgroup has 64 at each hook; those of the cgroups above run too. */
const maxPrograms = 1024;

function withFolder<Result>(folder: string, use: (fd: number) => Result): Result {
  let fd: number;
  try {
    fd = openSync(folder, fileConstants.O_RDONLY | fileConstants.O_DIRECTORY);
  } catch (error) {
    const errno = Math.abs((error as NodeJS.ErrnoException).errno ?? constants.errno.EINVAL);
    throw new NativeError(`cannot open the cgroup ${folder}`, { errno, syscall: 'open' });
  }
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}
