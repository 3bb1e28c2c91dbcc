import { InvariantError } from '@switchyard/core';
import type { BpfMapShape } from '@switchyard/native';

/**
 * Content of the maps, byte by byte: the single source for TypeScript and C. `tools/layouts-to-c.ts` makes `build/layouts.gen.h` of it.
 * Numbers are little-endian unless a field says `be16`. Addresses have 16 bytes, IPv4 as ::ffff:a.b.c.d. A changed layout needs a new
 * version.
 */
export const layoutVersion = 1;

/** `bytes16` is an address, `be16` a port as it is on the wire. */
export type FieldType = 'u8' | 'u16' | 'be16' | 'u32' | 'u64' | 'bytes16';

/** Bytes of each type. */
export const fieldSizes: Readonly<Record<FieldType, number>> = { u8: 1, u16: 2, be16: 2, u32: 4, u64: 8, bytes16: 16 };

/** Fields in their order; nothing is padded that is not written here. */
export type Layout = readonly (readonly [name: string, type: FieldType, meaning: string])[];

/** Records by their C names. Every value of a map that programs read as one is a u64, not a record. */
export const layouts = {
  frontend_key: [
    ['address', 'bytes16', 'destination; zero in the wildcard scope'],
    ['port', 'be16', 'destination port; zero in a guard entry'],
    ['protocol', 'u8', 'IPPROTO_*; zero in a guard entry'],
    ['scope', 'u8', 'frontendScopes'],
    ['reserved', 'u32', 'zero'],
  ],
  service: [
    ['cluster_set', 'u64', 'selection, see below'],
    ['local_set', 'u64', 'selection'],
    ['affinity_seconds', 'u32', 'time for which a client keeps its endpoint; zero: no affinity'],
    ['cookie', 'u16', 'of the frontends that may lead here'],
    ['flags', 'u16', 'none yet'],
    ['reserved', 'u64', 'zero'],
  ],
  endpoint: [
    ['address', 'bytes16', ''],
    ['port', 'be16', ''],
    ['flags', 'u16', 'endpointFlags'],
    ['generation', 'u32', 'grows with each reuse of the id'],
    ['service', 'u32', 'owner'],
    ['reserved', 'u32', 'zero'],
  ],
  affinity_key: [
    ['service', 'u32', ''],
    ['kind', 'u32', 'affinityKinds'],
    ['client', 'bytes16', 'source address, or the network namespace cookie in the last eight bytes'],
  ],
  affinity_value: [
    ['endpoint', 'u32', ''],
    ['generation', 'u32', 'of the endpoint'],
    ['last_seen', 'u64', 'ns of CLOCK_MONOTONIC'],
  ],
  source_range_key: [
    ['prefix_length', 'u32', 'bits: 32 for the service and those of the address, IPv4 96 more'],
    ['service', 'u32', 'as bytes of a number, so compared whole'],
    ['address', 'bytes16', ''],
  ],
  flow_key: [
    ['socket', 'u64', 'socket cookie; kind caller: cookie of the network namespace'],
    ['address', 'bytes16', 'kind reverse: of the endpoint; kind sticky: of the frontend; kind caller: of the client'],
    ['port', 'be16', ''],
    ['protocol', 'u8', ''],
    ['kind', 'u8', 'flowKinds'],
    ['local_port', 'u32', 'kind caller: of the socket, in host byte order; else zero'],
  ],
  flow_value: [
    ['address', 'bytes16', 'kind reverse: of the frontend, for getpeername and recvmsg; kind sticky: of the endpoint'],
    ['port', 'be16', ''],
    ['reserved', 'u16', 'zero'],
    ['endpoint', 'u32', ''],
    ['generation', 'u32', 'of the endpoint'],
    ['service', 'u32', ''],
    ['last_used', 'u64', 'ns of CLOCK_MONOTONIC'],
  ],
  statistics: [
    ['connections', 'u64', 'first packets, or calls of connect'],
    ['no_local_endpoint', 'u64', 'dropped'],
    ['no_endpoints', 'u64', 'rejected'],
    ['source_range', 'u64', 'dropped'],
  ],
  configuration: [
    ['host_netns', 'u64', 'cookie of the host network namespace'],
    ['pod_class', 'u8', 'class of sockets in other network namespaces: sourceClassIndex'],
    ['guards', 'u8', 'number of service CIDRs below'],
    ['guard_all', 'u8', '1: cluster IPs may be anywhere, so every miss looks for a guard entry'],
    ['reserved', 'u8', 'zero'],
    ['reserved2', 'u32', 'zero'],
    ['reserved3', 'u32', 'zero'],
    ['udp_sticky_seconds', 'u32', 'time for which an unconnected UDP socket keeps its endpoint'],
    ['guard0_address', 'bytes16', 'service CIDR'],
    ['guard0_mask', 'bytes16', ''],
    ['guard1_address', 'bytes16', ''],
    ['guard1_mask', 'bytes16', ''],
  ],
  pod_cidr_key: [
    ['prefix_length', 'u32', 'bits, IPv4 96 more'],
    ['address', 'bytes16', ''],
  ],
} as const;

/** A record's C name. */
export type LayoutName = keyof typeof layouts;

/** Bytes of a record. */
export function sizeOf(name: LayoutName): number {
  return (layouts[name] as Layout).reduce((sum, [, type]) => sum + fieldSizes[type], 0);
}

/** Bytes before a field of a record. */
export function offsetOf<Name extends LayoutName>(name: Name, field: (typeof layouts)[Name][number][0]): number {
  let offset = 0;
  for (const [one, type] of layouts[name] as Layout) {
    if (one === field) return offset;
    offset += fieldSizes[type];
  }
  throw new InvariantError(`no field ${field} in ${name}`); // the type rules it out
}

/** Bits of packed u64 values: name, first bit, how many. C gets a getter for each. */
export const packed = {
  /** The value of a frontend: read with one load. */
  frontend: [
    ['service', 0, 32],
    ['actions', 32, 16],
    ['cookie', 48, 16],
  ],
  /** Slots of one of a service's sets. Storing it commits a change for all frontends at once. */
  selection: [
    ['base', 0, 32],
    ['count', 32, 16],
    ['generation', 48, 16],
  ],
  /** One endpoint of a set, and the service that owns the slot. */
  slot: [
    ['service', 0, 32],
    ['endpoint', 32, 32],
  ],
} as const;

/** Scope of a frontend: its address, or a NodePort at all addresses of `node_addresses`. */
export const frontendScopes = { address: 0, nodePort: 1, guard: 2 } as const;

/** Action for a source class: two bits, and a third for masquerading; three bits for each class, in the order below. */
export const actions = { reject: 0, cluster: 1, local: 2, drop: 3 } as const;
/** Position of a class among a frontend's actions: that of `sourceClasses`. */
export const sourceClassIndex = { pod: 0, node: 1, outside: 2 } as const;
/** Bits of one class. */
export const actionBits = 3;
/** Added to an action of a class. */
export const masqueradeBit = 4;
/** Bits of `actions` above those of the classes. */
export const frontendFlags = {
  /** The source must be in `source_ranges`. */
  sourceRanges: 0x200,
  /** Socket programs ignore it: rules of nftables carry it, because the source must be known. */
  socketsPass: 0x400,
} as const;

/** Sets of an endpoint, and whether it exists: a client is pinned only to an endpoint of the set. */
export const endpointFlags = { inCluster: 1, inLocal: 2, alive: 4 } as const;
/** Identity of a client. */
export const affinityKinds = { address: 0, networkNamespace: 1 } as const;
/** To show the frontend, to find the same endpoint again, or to recognise a client of this socket. */
export const flowKinds = { reverse: 0, sticky: 1, caller: 2 } as const;
/** Flags of a local address. */
export const nodeAddressFlags = { nodePort: 1 } as const;

/** Service id and endpoint id that mean none. */
export const noId = 0;

/** The map that has each size. */
export const mapOfSize = {
  services: 'services',
  endpoints: 'endpoints',
  slots: 'slots',
  frontends: 'frontends',
  sourceRanges: 'source_ranges',
} as const;

/** Sizes that depend on the cluster, in entries. */
export type MapSizes = Readonly<Record<keyof typeof mapOfSize, number>>;

/** Names of the sizes. */
export const sizeNames = Object.keys(mapOfSize) as readonly (keyof MapSizes)[]; // its own keys

/** Sizes, each by itself. */
export function mapSizes(entries: (name: keyof MapSizes) => number): MapSizes {
  return Object.fromEntries(sizeNames.map((name) => [name, entries(name)])) as unknown as MapSizes; // all names are there
}

/** Sizes of a small cluster: 1.2 MB, and 128 kB for each CPU. Each look goes through all buckets of `frontends`. */
export const smallestSizes: MapSizes = {
  services: 4096,
  endpoints: 16_384,
  slots: 65_536,
  frontends: 4096,
  sourceRanges: 16_384,
};

/** All maps of one family, by their names in C. */
export type MapName =
  | 'frontends'
  | 'services'
  | 'endpoints'
  | 'slots'
  | 'affinity'
  | 'source_ranges'
  | 'flows'
  | 'node_addresses'
  | 'pod_cidrs'
  | 'masq_addresses'
  | 'configuration'
  | 'statistics';

type Shape = Omit<BpfMapShape, 'name'>;

/** Shapes of all maps. Maps with a fixed size are small, or evict the oldest entry. */
export function mapShapes(sizes: MapSizes): Readonly<Record<MapName, BpfMapShape>> {
  const array = (valueSize: number, maxEntries: number): Shape => {
    return { type: 'array', keySize: 4, valueSize, maxEntries, mmapable: true };
  };
  const hash = (keySize: number, valueSize: number, maxEntries: number): Shape => {
    return { type: 'hash', keySize, valueSize, maxEntries, noPrealloc: true };
  };
  const trie = (key: LayoutName, maxEntries: number): Shape => ({
    ...hash(sizeOf(key), 1, maxEntries),
    type: 'lpmTrie',
  });
  const lru = (key: LayoutName, value: LayoutName): Shape => {
    return { type: 'lruHash', keySize: sizeOf(key), valueSize: sizeOf(value), maxEntries: 65_536 };
  };
  const shapes: Readonly<Record<MapName, Shape>> = {
    frontends: hash(sizeOf('frontend_key'), 8, sizes.frontends),
    services: array(sizeOf('service'), sizes.services),
    endpoints: array(sizeOf('endpoint'), sizes.endpoints),
    slots: array(8, sizes.slots),
    affinity: lru('affinity_key', 'affinity_value'),
    source_ranges: trie('source_range_key', sizes.sourceRanges),
    flows: lru('flow_key', 'flow_value'),
    node_addresses: hash(16, 4, 4096),
    pod_cidrs: trie('pod_cidr_key', 64),
    masq_addresses: hash(4, 16, 4096),
    configuration: array(sizeOf('configuration'), 1),
    statistics: { type: 'perCpuArray', keySize: 4, valueSize: sizeOf('statistics'), maxEntries: sizes.services },
  };
  const named = Object.entries(shapes).map(([name, shape]) => [name, { name, ...shape }] as const);
  return Object.fromEntries(named) as Record<MapName, BpfMapShape>; // all names are there
}
