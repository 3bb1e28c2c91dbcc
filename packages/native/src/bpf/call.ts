import { constants } from 'node:os';
import { NativeError } from '../native-error.ts';
import { isLittleEndian } from '../netlink/byte-order.ts';
import { loadBpfAddon, type Pointers } from './bpf-addon.ts';
import { closeSync } from 'node:fs';

/** Commands of bpf(2), of `enum bpf_cmd`, as far as they are used here. */
export const commands = {
  MAP_CREATE: 0,
  MAP_LOOKUP_ELEM: 1,
  MAP_UPDATE_ELEM: 2,
  MAP_DELETE_ELEM: 3,
  OBJ_PIN: 6,
  OBJ_GET: 7,
  PROG_TEST_RUN: 10,
  PROG_GET_FD_BY_ID: 13,
  MAP_GET_FD_BY_ID: 14,
  OBJ_GET_INFO_BY_FD: 15,
  PROG_QUERY: 16,
  RAW_TRACEPOINT_OPEN: 17,
  MAP_LOOKUP_BATCH: 24,
  MAP_UPDATE_BATCH: 26,
  LINK_CREATE: 28,
  LINK_UPDATE: 29,
  ENABLE_STATS: 32,
  LINK_DETACH: 34,
} as const;

export type CommandName = keyof typeof commands;

export interface BpfCall {
  /** For the error: the attempt and its object. */
  readonly attempt: string;
  readonly attribute: Attribute;
  /** Offsets in the attribute, each with the buffer to point at. */
  readonly pointers?: Pointers;
  /** Path of the network namespace in which interface numbers count; default: the process's own. */
  readonly netns?: string | undefined;
}

/** Calls, and returns the result, such as a descriptor. Throws `NativeError`. */
export function callBpf(command: CommandName, call: BpfCall): number {
  const result = tryBpf(command, call);
  if (result < 0) throw bpfError(command, call.attempt, -result);
  return result;
}

/** Calls, and returns the result or a negative errno. */
export function tryBpf(command: CommandName, { attribute, pointers = [], netns }: BpfCall): number {
  const addon = loadBpfAddon();
  const number = commands[command];
  return netns === undefined
    ? addon.bpf(number, attribute.bytes, ...pointers)
    : addon.bpfIn(netns, number, attribute.bytes, ...pointers);
}

export function bpfError(command: CommandName, attempt: string, errno: number): NativeError {
  const next = errno === constants.errno.EPERM ? 'the process needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON' : '';
  return new NativeError(attempt, { errno, syscall: `bpf ${command}` }, next);
}

/** A part of `union bpf_attr`, in the machine's byte order, zero at first. */
export class Attribute {
  readonly bytes: Uint8Array;
  readonly #view: DataView;

  constructor(length: number) {
    // A buffer of its own: views over it stay where they are in memory, also short ones.
    this.bytes = new Uint8Array(new ArrayBuffer(length));
    this.#view = new DataView(this.bytes.buffer);
  }

  u32(offset: number, value: number): this {
    this.#view.setUint32(offset, value, isLittleEndian);
    return this;
  }

  u64(offset: number, value: bigint): this {
    this.#view.setBigUint64(offset, value, isLittleEndian);
    return this;
  }

  getU32(offset: number): number {
    return this.#view.getUint32(offset, isLittleEndian);
  }

  getU64(offset: number): bigint {
    return this.#view.getBigUint64(offset, isLittleEndian);
  }
}

/** Bytes of a path with the NUL that the kernel requires. */
export function cString(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\0`);
}

/** A name in a field of fixed length. */
export function readName(bytes: Uint8Array, offset: number, length: number): string {
  const end = bytes.indexOf(0, offset);
  return new TextDecoder().decode(bytes.subarray(offset, end < 0 || end > offset + length ? offset + length : end));
}

/** Returns the result of `use` for a descriptor, and closes the descriptor when `use` throws. */
export function orClose<Result>(fd: number, use: () => Result): Result {
  try {
    return use();
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
