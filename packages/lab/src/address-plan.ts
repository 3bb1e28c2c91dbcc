import { type IpAddress, type IpFamily, parseIp, UsageError } from '@switchyard/core';
import type { PerFamily } from './lab.ts';

/** Prefix of the network that joins all hosts of a lab, per family. */
export const nodeNetworks: Readonly<Record<IpFamily, string>> = { IPv4: '172.18.0.0/24', IPv6: 'fd00:172:18::/64' };
/** Cluster IP ranges of every lab. */
export const serviceCidrs: Readonly<Record<IpFamily, string>> = { IPv4: '10.96.0.0/16', IPv6: 'fd00:10:96::/112' };
/** Ranges that contain every node's pod CIDR; the value of `--cluster-cidr`. */
export const clusterCidrs: Readonly<Record<IpFamily, string>> = { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/48' };

/** Host numbers in the node network. Nodes follow from `firstNode`. */
export const hostNumbers: {
  readonly gateway: 1;
  readonly apiServer: 10;
  readonly firstNode: 11;
  readonly loadBalancer: 50;
  readonly client: 100;
} = { gateway: 1, apiServer: 10, firstNode: 11, loadBalancer: 50, client: 100 };

/** Node addresses end before the load balancer's. */
export const maxNodes: number = hostNumbers.loadBalancer - hostNumbers.firstNode;

const firstPod = 2;
const lastPod = 254;

/** Address `number` of the node network in each family; the IPv6 one shows the same digits. */
export function hostAddresses(number: number, families: readonly IpFamily[]): PerFamily<IpAddress> {
  return perFamily(families, (family) => parseIp(family === 'IPv4' ? `172.18.0.${number}` : `fd00:172:18::${number}`));
}

/** Pod CIDRs of node `index`, counted from 1. */
export function podCidrs(index: number, families: readonly IpFamily[]): PerFamily<string> {
  return perFamily(families, (family) => (family === 'IPv4' ? `10.244.${index}.0/24` : `fd00:10:244:${index}::/64`));
}

/** Address of pod `number` (2 to 254) on node `index`; the IPv6 one shows the same digits. */
export function podAddresses(index: number, number: number, families: readonly IpFamily[]): PerFamily<IpAddress> {
  return perFamily(families, (family) =>
    parseIp(family === 'IPv4' ? `10.244.${index}.${number}` : `fd00:10:244:${index}::${number}`),
  );
}

/**
 * Returns the next free number after `last`, round-robin from 2 to 254. Like CNI host-local, this keeps a new pod from
 * getting the address of a pod that was just deleted.
 */
export function nextPodNumber(last: number | undefined, isTaken: (number: number) => boolean): number {
  const count = lastPod - firstPod + 1;
  const start = last === undefined ? 0 : last - firstPod + 1;
  for (let step = 0; step < count; step++) {
    const number = firstPod + ((start + step) % count);
    if (!isTaken(number)) return number;
  }
  throw new UsageError('lab.pods', `cannot add a pod: all ${count} addresses of the node's pod CIDR are taken`);
}

/** Builds a value for each of `families`. */
export function perFamily<T>(families: readonly IpFamily[], make: (family: IpFamily) => T): PerFamily<T> {
  return Object.fromEntries(families.map((family) => [family, make(family)])) as PerFamily<T>;
}
