import { dataplaneNamed, type DataplaneName } from '@switchyard/scenarios';

/**
 * Number of markers that must answer one after the other until the proxy has applied everything written before the first. Where the kernel's state
 * is not one transaction (tables of iptables, maps of eBPF) the second, which is only seen after the first one's round, shows that
 * this has ended.
 */
export function markerRounds(dataplane: DataplaneName): number {
  return dataplaneNamed(dataplane).atomicity === 'transaction' ? 1 : 2;
}
