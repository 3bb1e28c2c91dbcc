import { ebpfTraits } from '@switchyard/backend-ebpf/traits';
import { iptablesTraits } from '@switchyard/backend-iptables/traits';
import { nftablesTraits } from '@switchyard/backend-nftables/traits';
import type { DataplaneTraits } from '@switchyard/core';

/** Traits of the dataplanes that scenario files and reports name. A harness of another dataplane brings its own traits. */
export const dataplanes = [nftablesTraits, iptablesTraits, ebpfTraits] as const;

/** Name of one of them. */
export type DataplaneName = (typeof dataplanes)[number]['name'];

/** All names, in the order of `dataplanes`. */
export const dataplaneNames: readonly DataplaneName[] = dataplanes.map(({ name }) => name);

/** Dataplane of commands and functions that name none. */
export const referenceDataplane: (typeof dataplanes)[number] = nftablesTraits;

/** Dataplane of a kube-proxy without `--proxy-mode`. */
export const kubeProxyDefault: (typeof dataplanes)[number] = iptablesTraits;

/** Name of a dataplane in scenario files; for a dataplane without one, that of its kube-proxy mode. */
export function nameInFiles({ name, kubeProxyMode }: DataplaneTraits): DataplaneName {
  return dataplaneNames.find((one) => one === name) ?? modeInFiles({ kubeProxyMode });
}

/** Name in scenario files of a dataplane's kube-proxy mode, for values that files do not give for the dataplane itself. */
export function modeInFiles({ kubeProxyMode }: Pick<DataplaneTraits, 'kubeProxyMode'>): DataplaneName {
  return dataplaneNames.find((one) => one === kubeProxyMode) ?? referenceDataplane.name;
}

/** Traits of the dataplane of that name. */
export function dataplaneNamed(name: DataplaneName): DataplaneTraits {
  return dataplanes.find((one) => one.name === name) ?? referenceDataplane;
}
