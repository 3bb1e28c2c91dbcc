import { cidrFamilyOf, type IpFamily } from '@switchyard/core';
import type { ConfigNote } from '../config/notes.ts';
import type { RunConfig } from '../config/run-config.ts';
import type { OwnNode } from './own-node.ts';
import { podDetectorOf } from './pod-detector.ts';

/** Returns inconsistencies of configuration and Node that kube-proxy reports too. Only for families in which the Node has an address. */
export function nodeNotes(config: RunConfig, node: OwnNode, supported: readonly IpFamily[]): readonly ConfigNote[] {
  const families = supported.filter((family) => node.addressOf(family) !== undefined);
  const ofFamilies = families.flatMap((ipFamily) => [
    ...podNotes(config, node, ipFamily),
    ...nodePortNotes(config, ipFamily),
  ]);
  return families.length === 0 ? [] : [...ofFamilies, ...openNodePortNotes(config)];
}

function podNotes({ detectLocal }: RunConfig, node: OwnNode, ipFamily: IpFamily): readonly ConfigNote[] {
  if (podDetectorOf(detectLocal, node, ipFamily).kind !== 'none') return [];
  const effect = 'traffic to cluster IPs is not masqueraded, and pods have no short circuit to Local services';
  const isConfigured = detectLocal.kind === 'clusterCIDR';
  const advice = isConfigured ? 'name a range of this family in clusterCIDR (--cluster-cidr)' : undefined;
  const fields = { ipFamily, detectLocalMode: isConfigured ? 'ClusterCIDR' : 'NodeCIDR', effect, advice };
  return [{ level: 'info', message: 'pods are not recognized: no pod range of this family', fields }];
}

/** Note on the iptables mode's default, which kube-proxy logs at each start; in its words. */
function openNodePortNotes({ nodePortAddresses: wanted }: RunConfig): readonly ConfigNote[] {
  if (wanted.primary || wanted.cidrs.length > 0) return [];
  const message = 'nodePortAddresses is unset; NodePort connections will be accepted on all local IPs';
  return [{ level: 'info', message, fields: { advice: 'consider using --nodeport-addresses primary' } }];
}

function nodePortNotes({ nodePortAddresses: wanted }: RunConfig, ipFamily: IpFamily): readonly ConfigNote[] {
  if (wanted.primary || wanted.cidrs.length === 0) return [];
  if (wanted.cidrs.some((cidr) => cidrFamilyOf(cidr) === ipFamily)) return [];
  const fields = { ipFamily, nodePortAddresses: wanted.cidrs };
  return [{ level: 'warn', message: 'NodePorts answer on all addresses of a family that no CIDR names', fields }];
}
