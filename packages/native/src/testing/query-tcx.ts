import { constants } from 'node:os';
import { Attribute, bpfError, tryBpf } from '../bpf/call.ts';
import type { AttachedProgram } from '../bpf/cgroup-links.ts';
import { type TcPlace, tcxIngress } from '../bpf/clsact.ts';
import { openProgramById } from '../bpf/kernel-program.ts';

const { EINVAL, ENOENT } = constants.errno;

/** A program at an interface, and the link that attaches it. */
export interface TcxProgram extends AttachedProgram {
  readonly linkId: number;
}

/** The programs that are attached to an interface by tcx, in the order in which they run. Throws `NativeError`. */
export function queryTcx({ ifindex, netns }: TcPlace): readonly TcxProgram[] {
  const [ids, linkIds] = [new Uint32Array(64), new Uint32Array(64)];
  const attribute = new Attribute(64).u32(0, ifindex).u32(4, tcxIngress).u32(24, ids.length);
  const pointers = [16, new Uint8Array(ids.buffer), 40, new Uint8Array(linkIds.buffer)];
  const attempt = `cannot list the programs of the interface ${ifindex}`;
  const result = tryBpf('PROG_QUERY', { attempt, attribute, pointers, netns });
  if (result === -ENOENT || result === -EINVAL) return []; // none, or a kernel without tcx
  if (result < 0) throw bpfError('PROG_QUERY', attempt, -result);
  return Array.from(ids.subarray(0, attribute.getU32(24)), (id, index) => {
    using program = openProgramById(id);
    return { id, name: program?.name ?? '', linkId: linkIds[index] ?? 0 };
  });
}
