import { absolutePath, interfacePatterns, oneOf } from './checks.ts';
import { type Field, fieldsOf } from './field.ts';

/** What the ebpf mode reads besides what all modes do. kube-proxy's file has no place for it. */
export const ebpfFields: readonly Field[] = fieldsOf({ modes: 'ebpf', change: 'restart', isAlwaysChecked: true }, [
  [
    'ebpf.cgroup',
    'text',
    '',
    "directory of cgroup2 whose processes' sockets are served; empty: the root of the cgroup2 mount",
    { check: (value) => (value === '' ? undefined : absolutePath(value)) },
  ],
  ['ebpf.bpffs', 'text', '/sys/fs/bpf', 'where bpffs is, or is to be mounted', { check: absolutePath }],
  [
    'ebpf.interfaces',
    'list',
    [],
    'names of devices on which clients from outside arrive, * for any text; nothing: all with a global address that lead to no pod',
    { check: interfacePatterns },
  ],
  [
    'ebpf.northSouth',
    'text',
    'auto',
    'who forwards what comes from outside: tc (programs), nftables (rules), or auto, programs where the kernel can',
    { check: oneOf('auto', 'tc', 'nftables') },
  ],
  [
    'ebpf.socketLB',
    'text',
    'all',
    'whose sockets are served: all, or host, those of the host network namespace alone; rules carry the others',
    { check: oneOf('all', 'host') },
  ],
]);
