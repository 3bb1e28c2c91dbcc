import {
  type Cidr,
  cidrFamilyOf,
  type ClusterStateView,
  hostCidr,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  isEverything,
  parseCidr,
  type TableOptions,
} from '@switchyard/core';
import { nodePortAddresses } from '@switchyard/host';
import type { RunConfig } from './config.ts';

const everything: Readonly<Record<IpFamily, Cidr>> = { IPv4: parseCidr('0.0.0.0/0'), IPv6: parseCidr('::/0') };

/** What the tables of a family depend on besides the cluster, as the flags and our Node say now. */
export function tableOptionsOf(config: RunConfig, state: ClusterStateView, ipFamily: IpFamily): TableOptions {
  const podCidr = config.detectLocal.kind === 'clusterCIDR' ? config.detectLocal.cidrs[ipFamily] : undefined;
  return {
    ipFamily,
    nodeName: config.nodeName,
    masqueradeAll: config.masqueradeAll,
    terminatingFallback: config.terminatingFallback,
    externalIps: config.featureGates.get('AllowServiceExternalIPs') === false ? 'ignore' : 'forward',
    podDetector: podCidr === undefined ? { kind: 'none' } : { kind: 'cidr', cidr: podCidr },
    nodePortCidrs: nodePortCidrsOf(config, state, ipFamily),
  };
}

/** Where healthCheckNodePort servers listen: the NodePort addresses that are on an interface. */
export function healthCheckAddresses(
  cidrs: readonly Cidr[],
  ipFamily: IpFamily,
  interfaceAddresses: () => readonly IpAddress[],
): readonly (IpAddress | 'any')[] {
  return cidrs.some(isEverything) ? ['any'] : nodePortAddresses(interfaceAddresses(), ipFamily, cidrs);
}

/** Whether the cluster told our Node's addresses. */
export function areNodeAddressesKnown(config: RunConfig, state: ClusterStateView): boolean {
  return (state.nodes.get(config.nodeName)?.addresses.length ?? 0) > 0;
}

function nodePortCidrsOf(config: RunConfig, state: ClusterStateView, ipFamily: IpFamily): readonly Cidr[] {
  if (config.nodePortAddresses.kind === 'primary') {
    const addresses = state.nodes.get(config.nodeName)?.addresses ?? [];
    return addresses
      .filter((ip) => ipFamilyOf(ip) === ipFamily)
      .slice(0, 1)
      .map(hostCidr);
  }
  const listed = config.nodePortAddresses.cidrs.filter((cidr) => cidrFamilyOf(cidr) === ipFamily);
  // A list of one family leaves the other open, as in kube-proxy.
  return listed.length > 0 ? listed : [everything[ipFamily]];
}
