import { oneOf, positive } from './checks.ts';
import { ebpfFields } from './ebpf-fields.ts';
import { type Field, fieldsOf, ignored, type Schema } from './field.ts';

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
