import { absolutePath, interfacePatterns, oneOf } from './checks.ts';
import type { Field, Meaning } from './field.ts';

const ours: Meaning = { kind: 'same' };

type Row = readonly [path: string, type: Field['type'], value: Field['default'], help: string, check: Field['check']];

const rows: readonly Row[] = [
  [
    'ebpf.cgroup',
    'text',
    '',
    "directory of cgroup2 whose processes' sockets are served; empty: the root of the cgroup2 mount",
    (value) => (value === '' ? undefined : absolutePath(value)),
  ],
  ['ebpf.bpffs', 'text', '/sys/fs/bpf', 'where bpffs is, or is to be mounted', absolutePath],
  [
    'ebpf.interfaces',
    'list',
    [],
    'names of devices on which clients from outside arrive, * for any text; nothing: all with a global address that lead to no pod',
    interfacePatterns,
  ],
  [
    'ebpf.northSouth',
    'text',
    'auto',
    'who forwards what comes from outside: tc (programs), nftables (rules), or auto, programs where the kernel can',
    oneOf('auto', 'tc', 'nftables'),
  ],
  [
    'ebpf.socketLB',
    'text',
    'all',
    'whose sockets are served: all, or host, those of the host network namespace alone; rules carry the others',
    oneOf('all', 'host'),
  ],
];

/** What the ebpf mode reads besides what all modes do. kube-proxy's file has no place for it. */
export const ebpfFields: readonly Field[] = rows.map(([path, type, value, help, check]): Field => ({
  path,
  type,
  default: value,
  modes: 'ebpf',
  meaning: ours,
  change: 'restart',
  help,
  isAlwaysChecked: true,
  ...(check === undefined ? {} : { check }),
}));
