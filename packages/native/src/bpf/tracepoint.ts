import { Attribute, callBpf } from './call.ts';
import { KernelLink } from './kernel-link.ts';
import { fdOf } from './kernel-program.ts';
import type { BpfLink, BpfProgram } from './types.ts';

/**
 * Attaches a program of type `tp_btf` to the tracepoint that its section names (Linux 5.5). It runs until the link is disposed.
 * Throws `NativeError`.
 */
export function attachTracepoint(program: BpfProgram): BpfLink {
  const attempt = `cannot attach the program ${program.name} to its tracepoint`;
  const fd = callBpf('RAW_TRACEPOINT_OPEN', { attempt, attribute: new Attribute(24).u32(8, fdOf(program)) });
  return new KernelLink(fd, `the BPF link of ${program.name} at its tracepoint`);
}
