import { oneOf, positive } from './checks.ts';
import { ebpfFields } from './ebpf-fields.ts';
import type { Field, Meaning, Schema } from './field.ts';

const ours: Meaning = { kind: 'same' };

const fields: readonly Field[] = [
  {
    path: 'manifests',
    type: 'text',
    default: '',
    modes: 'all',
    meaning: ours,
    change: 'restart',
    help: 'folder with YAML and JSON files to follow instead of an API server',
  },
  {
    path: 'nftTransport',
    type: 'text',
    default: 'netlink',
    modes: 'nftables, ebpf',
    meaning: { kind: 'ignored', why: 'everything goes to the kernel over netlink; no program nft is needed' },
    change: 'none',
    help: 'accepted for manifests of earlier releases: netlink, or cli',
    isAlwaysChecked: true,
    check: oneOf('netlink', 'cli'),
  },
  {
    path: 'iptablesVariant',
    type: 'text',
    default: 'auto',
    modes: 'iptables',
    meaning: ours,
    change: 'restart',
    help: "which of the kernel's two iptables gets the rules: nft, legacy, or auto, the one that the kubelet and others use",
    isAlwaysChecked: true,
    check: oneOf('auto', 'nft', 'legacy'),
  },
  ...ebpfFields,
  {
    path: 'terminatingFallback',
    type: 'text',
    default: 'on',
    modes: 'all',
    meaning: ours,
    change: 'live',
    help: 'off: never send to terminating endpoints, as Kubernetes up to 1.25; for experiments',
    check: oneOf('on', 'off'),
  },
  {
    path: 'kubeProxyRules',
    type: 'text',
    default: 'remove',
    modes: 'all',
    meaning: ours,
    change: 'restart',
    help: 'what a stopped kube-proxy left in the kernel: remove it once ours is in place, or keep it',
    check: oneOf('remove', 'keep'),
  },
  {
    path: 'serviceMetrics.enabled',
    type: 'boolean',
    default: true,
    isZeroKept: true,
    modes: 'all',
    meaning: ours,
    change: 'live',
    help: 'metrics of single Services',
  },
  {
    path: 'serviceMetrics.limit',
    type: 'integer',
    default: 1000,
    modes: 'all',
    meaning: ours,
    change: 'live',
    help: 'how many Service ports of a family have metrics of their own at most',
    check: positive,
  },
];

/** Our own configuration file. */
export const switchyardSchema: Schema = {
  apiVersion: 'switchyard.dev/v1alpha1',
  kind: 'SwitchyardConfiguration',
  fields,
};
