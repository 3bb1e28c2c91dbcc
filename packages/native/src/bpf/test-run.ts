import { Attribute, callBpf } from './call.ts';
import { fdOf } from './kernel-program.ts';
import type { BpfProgram } from './types.ts';

/** Input of a test run, which needs no attached program. */
export interface TestRunOptions {
  /** The packet, Ethernet header first, of 14 bytes at least; it has room to grow by 256 bytes. */
  readonly data?: Uint8Array;
  /** The program's context, such as `struct __sk_buff`; zeros at first. */
  readonly context?: Uint8Array;
  /** How often; default once. The time is the mean. */
  readonly repeat?: number;
  /** Path of the network namespace whose loopback device receives the packet; default: the process's own. */
  readonly netns?: string | undefined;
}

/** Result of a test run. */
export interface TestRunResult {
  readonly returnValue: number;
  /** The packet as the program left it. */
  readonly data: Uint8Array;
  /** The context as the program left it; empty where none was given. */
  readonly context: Uint8Array;
  /** Nanoseconds of one run. */
  readonly duration: number;
}

/** Runs a program of type tc (or another that the kernel can run so) on bytes. Throws `NativeError`. */
export function testRun(program: BpfProgram, options: TestRunOptions = {}): TestRunResult {
  const { data = new Uint8Array(0), context = new Uint8Array(0), repeat = 1, netns } = options;
  const dataOut = new Uint8Array(data.length === 0 ? 0 : data.length + 256);
  const contextOut = new Uint8Array(context.length);
  const attribute = new Attribute(80).u32(0, fdOf(program)).u32(8, data.length).u32(12, dataOut.length);
  attribute.u32(32, repeat).u32(40, context.length).u32(44, contextOut.length);
  const pointers: (number | Uint8Array)[] = [];
  if (data.length > 0) pointers.push(16, data, 24, dataOut);
  if (context.length > 0) pointers.push(48, context, 56, contextOut);
  callBpf('PROG_TEST_RUN', { attempt: `cannot run the program ${program.name}`, attribute, pointers, netns });
  return {
    returnValue: attribute.getU32(4),
    data: dataOut.subarray(0, attribute.getU32(12)),
    context: contextOut.subarray(0, attribute.getU32(44)),
    duration: attribute.getU32(36),
  };
}
