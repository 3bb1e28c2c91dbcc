import { type AddonFile, addonPlaces, loadAddonFile } from '../addon.ts';

/** Pairs of a name and a number: a bigint on the way in, a descriptor on the way out. */
type NamedNumbers<Value> = readonly (readonly [name: string, value: Value])[];

/** Offsets in an attribute, each with the buffer that its field points at. */
export type Pointers = readonly (number | Uint8Array)[];

/** The functions of the compiled addon that speaks bpf(2). Failures are negative errno numbers. */
export interface BpfAddon {
  /** `pointers` are pairs of an offset in the attribute and the buffer to point at. */
  bpf(command: number, attribute: Uint8Array, ...pointers: Pointers): number;
  /** The same in the network namespace with this path; an empty one is the process's own. */
  bpfIn(netns: string, command: number, attribute: Uint8Array, ...pointers: Pointers): number;
  /** Stores pointers permanently. The attribute's owner must keep the buffers, which must not be on the engine's heap. */
  point(attribute: Uint8Array, ...pointers: Pointers): void;
  mapMemory(fd: number, bytes: number): ArrayBuffer | number;
  unmapMemory(buffer: ArrayBuffer): void;
  /** Writes eight bytes. */
  netnsCookie(netns: string, bytes: Uint8Array): number;
  mountBpffs(path: string): number;
  /** `maps`: a descriptor and the sizes of key and value for each. */
  fingerprint(links: Int32Array, maps: Int32Array, folders: readonly string[]): bigint;
  /** `position`: its length, then its bytes; zero for the start. It is moved on. */
  sliceFingerprint(fd: number, keySize: number, valueSize: number, position: Uint8Array): bigint;
  loadObject(bytes: Uint8Array, options: ObjectOptions): LoadedObject;
  /** The compiled `bpf/NAME.bpf.c`. */
  embeddedObject(name: EmbeddedObject): Uint8Array;
}

/** Object files that are part of the addon. */
export type EmbeddedObject = 'probe-hooks' | 'probe-conntrack' | 'drops';

/** What `loadObject` of the addon takes. */
export interface ObjectOptions {
  readonly maps: NamedNumbers<bigint>;
  readonly constants: NamedNumbers<bigint>;
  readonly skip: readonly string[];
}

/** What `loadObject` of the addon returns; descriptors belong to the caller, also after an error. */
export interface LoadedObject {
  readonly maps: NamedNumbers<number>;
  readonly programs: NamedNumbers<number>;
  readonly error: number;
  readonly attempt: string;
  readonly log: string;
}

const file: AddonFile = {
  name: 'switchyard_bpf.node',
  whatNext: 'use the image agent-ebpf, or use another mode than ebpf',
  libraries: new Map([
    ['libbpf.so', 'libbpf1'],
    ['libelf.so', 'libelf1'],
    ['libz.so', 'zlib1g'],
  ]),
};

let loaded: BpfAddon | undefined;

/** The addon, loaded once. Throws `NativeMissingError`. */
export function loadBpfAddon(candidates?: readonly URL[]): BpfAddon {
  if (candidates !== undefined) return loadAddonFile(file, candidates) as BpfAddon; // by the file's name
  loaded ??= loadAddonFile(file, addonPlaces(file.name)) as BpfAddon;
  return loaded;
}
