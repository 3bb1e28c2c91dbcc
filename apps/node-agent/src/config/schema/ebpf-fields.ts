import { absolutePath, interfacePatterns, oneOf } from './checks.ts';
import { type Field, fieldsOf } from './field.ts';

/** Fields of the ebpf mode only. kube-proxy's file has none for it. */
export const ebpfFields: readonly Field[] = fieldsOf({ modes: 'ebpf', change: 'restart', isAlwaysChecked: true }, [
  [
    'ebpf.cgroup',
    'text',
    '',
    'cgroup2 directory; the sockets of its processes are served; empty: the root of the cgroup2 mount',
    { check: (value) => (value === '' ? undefined : absolutePath(value)) },
  ],
  ['ebpf.bpffs', 'text', '/sys/fs/bpf', 'mount point of bpffs; mounted if missing', { check: absolutePath }],
  [
    'ebpf.interfaces',
    'list',
    [],
    "network devices at which programs serve arriving packets, * for any text; empty: all devices with or without an address, those of pods too, except loopback, ports of bridges and bonds, devices by whose names pods are detected, and bridges other than the default route's, which rules serve",
    { check: interfacePatterns },
  ],
  [
    'ebpf.northSouth',
    'text',
    'auto',
    'dataplane of traffic from outside the node: tc (programs), nftables (rules), or auto (programs if the kernel supports them)',
    { check: oneOf('auto', 'tc', 'nftables') },
  ],
  [
    'ebpf.socketLB',
    'text',
    'all',
    'sockets that are served: all, or host (only those of the host network namespace; rules serve the others)',
    { check: oneOf('all', 'host') },
  ],
]);
