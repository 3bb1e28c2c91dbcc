import { constants } from 'node:os';
import { HostError } from '@switchyard/core';
import { Attribute, bpfError, callBpf, cString, orClose, tryBpf } from './call.ts';
import { mapFlags, readMapInfo } from './info.ts';
import { KernelMap } from './kernel-map.ts';
import { type BpfMap, type BpfMapShape, bpfMapTypes } from './types.ts';

const { ENOENT } = constants.errno;

/** A new map, empty. It lives as long as this, a pin, or a program that uses it. Throws `NativeError`. */
export function createMap(shape: BpfMapShape): BpfMap {
  const { name, type, keySize, valueSize, maxEntries, mmapable = false, noPrealloc = false } = shape;
  const flags = (mmapable ? mapFlags.mmapable : 0) | (noPrealloc || type === 'lpmTrie' ? mapFlags.noPrealloc : 0);
  const attribute = new Attribute(48).u32(0, bpfMapTypes[type]).u32(4, keySize).u32(8, valueSize);
  attribute.u32(12, maxEntries).u32(16, flags);
  attribute.bytes.set(cString(name).subarray(0, 15), 28);
  const attempt = `cannot make the BPF map ${name} (${type}, ${maxEntries} elements of ${keySize} and ${valueSize} bytes)`;
  return asMap(callBpf('MAP_CREATE', { attempt, attribute }), `the BPF map ${name}`);
}

/** The map that is pinned there, or undefined. Throws `HostError` where it differs from `shape` in more than name and size, or `NativeError`. */
export function openPinnedMap(path: string, shape?: BpfMapShape): BpfMap | undefined {
  const fd = openPin(path);
  if (fd === undefined) return undefined;
  const map = asMap(fd, `what is pinned at ${path}`);
  if (shape === undefined || isSameKind(map.shape, shape)) return map;
  map[Symbol.dispose]();
  throw new HostError('bpf.shape', `the BPF map pinned at ${path} is ${describe(map.shape)}, not ${describe(shape)}`);
}

/** The map with this number; undefined when there is none. Throws `NativeError`. */
export function openMapById(id: number): BpfMap | undefined {
  const attempt = `cannot open the BPF map with the id ${id}`;
  const fd = tryBpf('MAP_GET_FD_BY_ID', { attempt, attribute: new Attribute(12).u32(0, id) });
  if (fd === -ENOENT) return undefined;
  if (fd < 0) throw bpfError('MAP_GET_FD_BY_ID', attempt, -fd);
  return asMap(fd, `the BPF map with the id ${id}`);
}

/** A descriptor of what is pinned there, or undefined. Throws `NativeError`. */
export function openPin(path: string): number | undefined {
  const attempt = `cannot open what is pinned at ${path}`;
  const fd = tryBpf('OBJ_GET', { attempt, attribute: new Attribute(16), pointers: [0, cString(path)] });
  if (fd === -ENOENT) return undefined;
  if (fd < 0) throw bpfError('OBJ_GET', attempt, -fd);
  return fd;
}

/** Takes the descriptor over. */
export function asMap(fd: number, what: string): KernelMap {
  return orClose(fd, () => {
    const { id, shape } = readMapInfo(fd, what);
    if (shape !== undefined) return new KernelMap(fd, id, shape);
    throw new HostError('bpf.shape', `${what} is a map of a type that is not used here`);
  });
}

/** Whether one can stand for the other, apart from name and number of elements. */
function isSameKind(one: BpfMapShape, other: BpfMapShape): boolean {
  return (
    one.type === other.type &&
    one.keySize === other.keySize &&
    one.valueSize === other.valueSize &&
    one.mmapable === other.mmapable &&
    (one.noPrealloc === true || one.type === 'lpmTrie') === (other.noPrealloc === true || other.type === 'lpmTrie')
  );
}

function describe({ type, keySize, valueSize, mmapable, noPrealloc }: BpfMapShape): string {
  const flags = `${mmapable === true ? ', mmapable' : ''}${noPrealloc === true ? ', without preallocation' : ''}`;
  return `${type} with keys of ${keySize} and values of ${valueSize} bytes${flags}`;
}
