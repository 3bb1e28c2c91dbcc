import { oneOf, positive, absolutePath, interfacePatterns } from './checks.ts';
import { type Field, fieldsOf, ignored, type Schema } from './field.ts';

/** Fields of the ebpf mode only. kube-proxy's file has none for it. */
const ebpfFields: readonly Field[] = fieldsOf({ modes: 'ebpf', change: 'restart', isAlwaysChecked: true }, [
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

const ofModes = fieldsOf({ modes: 'all', change: 'restart' }, [
  ['manifests', 'text', '', 'directory with YAML and JSON files, watched instead of an API server'],
  [
    'nftTransport',
    'text',
    'netlink',
    'accepted for manifests of earlier releases: netlink, or cli',
    {
      modes: 'nftables, ebpf',
      meaning: ignored('everything goes to the kernel over netlink; no program nft is needed'),
      isAlwaysChecked: true,
      check: oneOf('netlink', 'cli'),
    },
  ],
  [
    'iptablesVariant',
    'text',
    'auto',
    'iptables variant to program: nft, legacy, or auto (the one that the kubelet and others use)',
    { modes: 'iptables', isAlwaysChecked: true, check: oneOf('auto', 'nft', 'legacy') },
  ],
]);

const ofAllModes = fieldsOf({ modes: 'all', change: 'live' }, [
  [
    'terminatingFallback',
    'text',
    'on',
    'off: never use terminating endpoints, as Kubernetes up to 1.25; for experiments',
    { check: oneOf('on', 'off') },
  ],
  [
    'kubeProxyRules',
    'text',
    'remove',
    'rules that a stopped kube-proxy left: remove them once the rules of the agent are in place, or keep them',
    { change: 'restart', check: oneOf('remove', 'keep') },
  ],
  [
    'drainGate',
    'boolean',
    false,
    'answer a drain gate on the health port: what this node has applied, and connections of its pods',
    { change: 'restart' },
  ],
  ['serviceMetrics.enabled', 'boolean', true, 'export metrics per Service', { isZeroKept: true }],
  [
    'serviceMetrics.limit',
    'integer',
    1000,
    'maximum number of Service ports per IP family with their own metrics',
    { check: positive },
  ],
]);

const fields: readonly Field[] = [...ofModes, ...ebpfFields, ...ofAllModes];

/** Our own configuration file. */
export const switchyardSchema: Schema = {
  apiVersion: 'switchyard.dev/v1alpha1',
  kind: 'SwitchyardConfiguration',
  fields,
};
