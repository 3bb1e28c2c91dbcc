import { oneOf, positive } from './checks.ts';
import { ebpfFields } from './ebpf-fields.ts';
import { type Field, fieldsOf, ignored, type Schema } from './field.ts';

const ofModes = fieldsOf({ modes: 'all', change: 'restart' }, [
  ['manifests', 'text', '', 'folder with YAML and JSON files to follow instead of an API server'],
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
    "which of the kernel's two iptables gets the rules: nft, legacy, or auto, the one that the kubelet and others use",
    { modes: 'iptables', isAlwaysChecked: true, check: oneOf('auto', 'nft', 'legacy') },
  ],
]);

const ofAllModes = fieldsOf({ modes: 'all', change: 'live' }, [
  [
    'terminatingFallback',
    'text',
    'on',
    'off: never send to terminating endpoints, as Kubernetes up to 1.25; for experiments',
    { check: oneOf('on', 'off') },
  ],
  [
    'kubeProxyRules',
    'text',
    'remove',
    'what a stopped kube-proxy left in the kernel: remove it once ours is in place, or keep it',
    { change: 'restart', check: oneOf('remove', 'keep') },
  ],
  ['serviceMetrics.enabled', 'boolean', true, 'metrics of single Services', { isZeroKept: true }],
  [
    'serviceMetrics.limit',
    'integer',
    1000,
    'how many Service ports of a family have metrics of their own at most',
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
