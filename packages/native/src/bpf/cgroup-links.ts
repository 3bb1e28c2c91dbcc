import { closeSync, constants as fileConstants, openSync } from 'node:fs';
import { constants } from 'node:os';
import { NativeError } from '../native-error.ts';
import { Attribute, callBpf } from './call.ts';
import { KernelLink } from './kernel-link.ts';
import { fdOf } from './kernel-program.ts';
import { type AttachedProgram, queryPrograms } from './query.ts';
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
  return withFolder(cgroupDir, (target) =>
    queryPrograms({
      target,
      attachType: cgroupAttachTypes[hook],
      flags: options.isEffective === true ? 1 : 0,
      attempt: `cannot list the programs at ${hook} of the cgroup ${cgroupDir}`,
    }),
  );
}

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
