import { loadBpfAddon } from './bpf-addon.ts';
import { Attribute, callBpf, readName } from './call.ts';
import { type BpfMapShape, type BpfMapType, bpfMapTypes } from './types.ts';
import { NativeError } from '../native-error.ts';
import { isLittleEndian } from '../netlink/byte-order.ts';

/** Flags of a map, of linux/bpf.h. */
export const mapFlags = { noPrealloc: 0x1, mmapable: 0x400 } as const;

/** A map's number and shape; `undefined` for a type that is not used here. Throws `NativeError`. */
export function readMapInfo(fd: number, what: string): { readonly id: number; readonly shape?: BpfMapShape } {
  const info = readInfo(fd, 88, what);
  const type = typeNames.get(info.getU32(0));
  const id = info.getU32(4);
  if (type === undefined) return { id };
  const flags = info.getU32(20);
  return {
    id,
    shape: {
      name: readName(info.bytes, 24, 16),
      type,
      keySize: info.getU32(8),
      valueSize: info.getU32(12),
      maxEntries: info.getU32(16),
      ...((flags & mapFlags.mmapable) === 0 ? {} : { mmapable: true }),
      ...((flags & mapFlags.noPrealloc) === 0 ? {} : { noPrealloc: true }),
    },
  };
}

const typeNames: ReadonlyMap<number, BpfMapType> = new Map(
  Object.entries(bpfMapTypes).map(([name, value]) => [value, name as BpfMapType]), // its own keys
);

/** The kernel's information about a program. */
interface BpfProgramInfo {
  readonly id: number;
  readonly name: string;
  /** 16 hexadecimal digits. */
  readonly tag: string;
  readonly mapIds: readonly number[];
}

/** Throws `NativeError`. */
export function readProgramInfo(fd: number, what: string): BpfProgramInfo {
  const length = 208;
  const count = readInfo(fd, length, what).getU32(52);
  const ids = new Uint32Array(count);
  const info = new Attribute(length);
  info.u32(52, count);
  const pointed = count === 0 ? [] : ([56, new Uint8Array(ids.buffer)] as const);
  fillInfo(fd, { info, pointed, what });
  return {
    id: info.getU32(4),
    name: readName(info.bytes, 64, 16),
    tag: Buffer.from(info.bytes.subarray(8, 16)).toString('hex'),
    mapIds: [...ids.subarray(0, info.getU32(52))],
  };
}

/** The kernel's information about a link. */
export interface BpfLinkInfo {
  readonly id: number;
  readonly programId: number;
  /** False when it was detached, or when its cgroup or interface was deleted. */
  readonly isAttached: boolean;
  /** Of a cgroup link: the cgroup's number (inode of its folder); else 0. */
  readonly cgroupId: bigint;
  /** Of a tcx link: the interface's number in its namespace; else 0. */
  readonly ifindex: number;
}

const linkTypes = { cgroup: 3, tcx: 11 } as const;

/** Throws `NativeError`. */
export function readLinkInfo(fd: number, what: string): BpfLinkInfo {
  const info = readInfo(fd, 64, what);
  const type = info.getU32(0);
  const cgroupId = type === linkTypes.cgroup ? info.getU64(16) : 0n;
  const ifindex = type === linkTypes.tcx ? info.getU32(16) : 0;
  const isAttached = (type !== linkTypes.cgroup && type !== linkTypes.tcx) || cgroupId !== 0n || ifindex !== 0;
  return { id: info.getU32(4), programId: info.getU32(8), isAttached, cgroupId, ifindex };
}

export function readInfo(fd: number, length: number, what: string): Attribute {
  const info = new Attribute(length);
  fillInfo(fd, { info, pointed: [], what });
  return info;
}

interface InfoRequest {
  readonly info: Attribute;
  /** An offset in the information and the buffer to point at there. */
  readonly pointed: readonly (number | Uint8Array)[];
  readonly what: string;
}

function fillInfo(fd: number, { info, pointed, what }: InfoRequest): void {
  if (pointed.length > 0) loadBpfAddon().point(info.bytes, ...pointed);
  const attribute = new Attribute(16).u32(0, fd).u32(4, info.bytes.length);
  callBpf('OBJ_GET_INFO_BY_FD', { attempt: `cannot ask about ${what}`, attribute, pointers: [8, info.bytes] });
}

/** The kernel's number of a network namespace, as programs see it (Linux 5.14). Default: the process's own. Throws `NativeError`. */
export function netnsCookie(path?: string): bigint {
  const bytes = new Uint8Array(8);
  const result = loadBpfAddon().netnsCookie(path ?? '', bytes);
  if (result === 0) return new DataView(bytes.buffer).getBigUint64(0, isLittleEndian);
  const attempt = `cannot read the cookie of the network namespace ${path ?? 'of this process'}`;
  throw new NativeError(attempt, { errno: -result, syscall: 'getsockopt SO_NETNS_COOKIE' });
}
