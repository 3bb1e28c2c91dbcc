import {
  type Cidr,
  cidrFamilyOf,
  everythingOf,
  hostCidr,
  type IpAddress,
  type IpFamily,
  isEverything,
  type NodePortsOnLoopback,
  type TableOptions,
  assertNever,
  type PodDetector,
} from '@switchyard/core';
import { nodePortAddresses } from '@switchyard/host';
import { traitsOf } from './backends.ts';
import type { RunConfig } from './config.ts';
import type { OwnNode } from './node/own-node.ts';
import type { DetectLocal } from './config/run-config.ts';

/** Options of the tables of a family, from the current configuration and the Node. */
export function tableOptionsOf(config: RunConfig, node: OwnNode, ipFamily: IpFamily): TableOptions {
  return {
    ipFamily,
    nodeName: config.nodeName,
    masqueradeAll: config.masqueradeAll,
    terminatingFallback: config.terminatingFallback,
    externalIps: config.featureGates.get('AllowServiceExternalIPs') === false ? 'ignore' : 'forward',
    routerIpMode: config.featureGates.get('SwitchyardLoadBalancerIPModeRouter') === true ? 'localOnly' : 'asVip',
    podDetector: podDetectorOf(config.detectLocal, node, ipFamily),
    nodeIp: node.addressOf(ipFamily),
    nodePortCidrs: nodePortCidrsOf(config, node, ipFamily),
    nodePortsOnLoopback: nodePortsOnLoopback(config, ipFamily),
  };
}

/**
 * Where healthCheckNodePort servers listen: the NodePort addresses that are on an interface. As in kube-proxy, a CIDR with
 * loopback addresses counts in every mode, also where NodePorts themselves do not answer on them.
 */
export function healthCheckAddresses(
  cidrs: readonly Cidr[],
  ipFamily: IpFamily,
  listenAddresses: () => readonly IpAddress[],
): readonly (IpAddress | 'any')[] {
  return cidrs.some(isEverything) ? ['any'] : nodePortAddresses(listenAddresses(), ipFamily, cidrs);
}

/** The proxy needs loopback addresses that are listed by themselves: `all` includes them and does not start it (KEP-6032). */
function nodePortsOnLoopback(config: RunConfig, ipFamily: IpFamily): NodePortsOnLoopback {
  const { mode, iptables, nodePortAddresses: listed, featureGates } = config;
  if (traitsOf(mode).loopbackNodePorts === 'kernel')
    return ipFamily === 'IPv4' && iptables.localhostNodePorts ? 'kernel' : 'none';
  const isOn = featureGates.get('KubeProxyNFTablesLocalhostNodePorts') === true;
  return isOn && listed.loopback.includes(ipFamily) ? 'proxy' : 'none';
}

function nodePortCidrsOf(config: RunConfig, node: OwnNode, ipFamily: IpFamily): readonly Cidr[] {
  const { primary, cidrs } = config.nodePortAddresses;
  const address = primary ? node.addressOf(ipFamily) : undefined;
  const listed = cidrs.filter((cidr) => cidrFamilyOf(cidr) === ipFamily);
  if (address !== undefined) listed.unshift(hostCidr(address));
  // CIDRs of one family alone leave the other open, as in kube-proxy.
  return listed.length > 0 || primary ? listed : [everythingOf(ipFamily)];
}

/** Returns how the kernel recognizes pods of one family, from `detectLocalMode` and the current Node. */
export function podDetectorOf(detectLocal: DetectLocal, node: OwnNode, ipFamily: IpFamily): PodDetector {
  switch (detectLocal.kind) {
    case 'clusterCIDR': {
      const cidr = detectLocal.cidrs[ipFamily];
      return cidr === undefined ? { kind: 'none' } : { kind: 'cidr', cidr };
    }
    case 'nodeCIDR': {
      const cidr = node.podCidrOf(ipFamily);
      return cidr === undefined ? { kind: 'none' } : { kind: 'cidr', cidr };
    }
    case 'bridgeInterface':
      return { kind: 'interface', name: detectLocal.name };
    case 'interfaceNamePrefix':
      return { kind: 'interfacePrefix', prefix: detectLocal.prefix };
    default:
      return assertNever(detectLocal);
  }
}
