import {
  actionBits,
  actions,
  affinityKinds,
  endpointFlags,
  fieldSizes,
  flowKinds,
  frontendFlags,
  frontendScopes,
  type Layout,
  layouts,
  mapShapes,
  masqueradeBit,
  nodeAddressFlags,
  packed,
  smallestSizes,
  sourceClassIndex,
} from '../src/render/layouts.ts';

/** C's type of a field; arrays carry their length after the name. */
const cTypes: Readonly<Record<keyof typeof fieldSizes, string>> = {
  u8: '__u8',
  u16: '__u16',
  be16: '__be16',
  u32: '__u32',
  u64: '__u64',
  bytes16: 'struct sy_address',
};

const mapTypes = {
  hash: 'BPF_MAP_TYPE_HASH',
  array: 'BPF_MAP_TYPE_ARRAY',
  perCpuArray: 'BPF_MAP_TYPE_PERCPU_ARRAY',
  lruHash: 'BPF_MAP_TYPE_LRU_HASH',
  lpmTrie: 'BPF_MAP_TYPE_LPM_TRIE',
} as const;

/** The header with all records, numbers, getters and maps. */
export function layoutsToC(): string {
  return [
    '// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)',
    '// Made from src/render/layouts.ts; do not edit.',
    '#pragma once',
    '#include <linux/bpf.h>',
    '#include <linux/types.h>',
    '#include <bpf/bpf_helpers.h>',
    '',
    '/* 16 bytes in network order, IPv4 as ::ffff:a.b.c.d. */',
    'struct sy_address { __be32 word[4]; } __attribute__((packed, aligned(4)));',
    ...Object.entries(layouts).flatMap(([name, layout]) => struct(name, layout)),
    ...Object.entries(packed).flatMap(([name, fields]) => fields.map((field) => getter(name, field))),
    '',
    ...constants('ACTION', actions),
    `#define SY_ACTION_BITS ${actionBits}`,
    `#define SY_ACTION_MASQUERADE ${masqueradeBit}`,
    ...constants('CLASS', sourceClassIndex),
    ...constants('FRONTEND', frontendFlags),
    ...constants('SCOPE', frontendScopes),
    ...constants('ENDPOINT', endpointFlags),
    ...constants('AFFINITY', affinityKinds),
    ...constants('FLOW', flowKinds),
    ...constants('NODE_ADDRESS', nodeAddressFlags),
    ...maps(),
    '',
  ].join('\n');
}

function struct(name: string, layout: Layout): readonly string[] {
  let offset = 0;
  const asserts: string[] = [];
  const lines = layout.map(([field, type, meaning]) => {
    asserts.push(`_Static_assert(__builtin_offsetof(struct sy_${name}, ${field}) == ${offset}, "${name}.${field}");`);
    offset += fieldSizes[type];
    return `  ${cTypes[type]} ${field};${meaning === '' ? '' : ` /* ${meaning} */`}`;
  });
  asserts.push(`_Static_assert(sizeof(struct sy_${name}) == ${offset}, "${name}");`);
  return ['', `struct sy_${name} {`, ...lines, '} __attribute__((packed, aligned(4)));', ...asserts];
}

function getter(name: string, [field, shift, bits]: readonly [string, number, number]): string {
  const type = bits === 32 ? '__u32' : '__u16';
  return `static __always_inline ${type} sy_${name}_${field}(__u64 value) { return (${type})(value >> ${shift}); }`;
}

function constants(prefix: string, values: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(values).map(([name, value]) => `#define SY_${prefix}_${constantCase(name)} ${value}`);
}

function constantCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, '_$&').toUpperCase();
}

function maps(): readonly string[] {
  return Object.values(mapShapes(smallestSizes)).flatMap(
    ({ name, type, keySize, valueSize, maxEntries, mmapable, noPrealloc }) => {
      const flags = [
        ...(mmapable === true ? ['BPF_F_MMAPABLE'] : []),
        ...(noPrealloc === true ? ['BPF_F_NO_PREALLOC'] : []),
      ];
      return [
        '',
        'struct {',
        `  __uint(type, ${mapTypes[type]});`,
        `  __uint(key_size, ${keySize});`,
        `  __uint(value_size, ${valueSize});`,
        `  __uint(max_entries, ${maxEntries});`,
        ...(flags.length === 0 ? [] : [`  __uint(map_flags, ${flags.join(' | ')});`]),
        `} ${name} SEC(".maps");`,
      ];
    },
  );
}
