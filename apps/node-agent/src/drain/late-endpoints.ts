import type { ForwardingTable, IpFamily, ServiceForwarding, ServiceKey, TrafficPolicy } from '@switchyard/core';
import type { PodUse } from '@switchyard/drain-gate';
import type { ReadChoices } from '@switchyard/netfilter';
import { portsOf } from './service-ports.ts';

/** Opens the rules of the node's own proxy for an IP family, to read them. Throws `HostError`. */
export type OpenChoices = (ipFamily: IpFamily) => ReadChoices & Disposable;

/** Endpoints of these Services that the rules of another proxy choose although the table does not, or the other way round. */
export function lateEndpoints(
  tables: ReadonlyMap<IpFamily, ForwardingTable>,
  services: readonly ServiceKey[],
  open: OpenChoices,
): readonly PodUse[] {
  return [...tables].flatMap(([ipFamily, table]) => {
    const ports = [...new Set(services)].flatMap((service) => portsOf(table, service));
    if (ports.length === 0) return [];
    using read = open(ipFamily);
    return ports.flatMap((port) => lateOfPort(port, read));
  });
}

function lateOfPort(port: ServiceForwarding, read: ReadChoices): readonly PodUse[] {
  const { key, service, policies, endpoints, knownEndpoints } = port;
  const choices = read(key);
  const inUse = new Set([policies.internal, policies.external]);
  return knownEndpoints.flatMap((endpoint) => {
    const { address, port: number } = endpoint;
    const isWanted = (policy: TrafficPolicy): boolean =>
      endpoints[policy].some((one) => one.address === address && one.port === number);
    const late = [...inUse].filter(
      (policy) => (choices.isChosen(policy, { address, port: number }) ?? false) !== isWanted(policy),
    );
    return late.length === 0 ? [] : [{ address, service, policies: late, isLate: true }];
  });
}
