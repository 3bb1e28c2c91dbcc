import { ConfigError, HostError, type IpFamily, millis, seconds, cidrFamilyOf } from '@switchyard/core';
import type { StartCondition } from '@switchyard/core/engine';
import type { RunConfig } from '../config/run-config.ts';
import type { OwnNode } from './own-node.ts';
import type { ConfigNote } from '../config/notes.ts';
import { podDetectorOf } from '../node-settings.ts';

/** kube-proxy waits as long for its Node's addresses, and for its pod ranges. */
const addressTimeout = seconds(30);
const podCidrTimeout = seconds(300);

/**
 * Returns the conditions of the first apply. The Node may be created, and get its addresses and pod ranges, after the agent
 * started; missing data in manifests is not awaited. After the timeout the agent starts without addresses, and follows them
 * later; without pod ranges it ends, because it cannot recognize pods. `supported` are the IP families of this machine: it
 * must have the Node's primary one (kube-proxy fact 77).
 */
export function startConditionsOf(
  config: RunConfig,
  node: OwnNode,
  supported: readonly IpFamily[],
): readonly StartCondition[] {
  checkPrimaryFamily(node, supported); // for --bind-address, which needs no waiting
  checkClusterCidrs(config, supported);
  const isFixed = config.source.kind === 'manifests';
  const conditions: StartCondition[] = [];
  if (config.detectLocal.kind === 'nodeCIDR') {
    conditions.push({
      what: `spec.podCIDRs of Node ${config.nodeName}, which identify pods (detectLocalMode NodeCIDR)`,
      isMet: () => {
        checkPrimaryFamily(node, supported);
        if (node.podCidrs.length > 0) checkPodCidrs(node);
        return node.podCidrs.length > 0;
      },
      timeout: isFixed ? millis(0) : podCidrTimeout,
      failure: () => {
        const when = isFixed ? 'in the manifests' : `after ${podCidrTimeout / 1000} s`;
        return new ConfigError(
          'node.podCidrs',
          `--detect-local-mode=NodeCIDR: Node ${config.nodeName} has no spec.podCIDRs ${when}; let the controller manager ` +
            'allocate them (--allocate-node-cidrs), check --hostname-override, or choose another mode',
        );
      },
    });
  }
  if (config.nodePortAddresses.primary) {
    conditions.push({
      what: `the addresses of Node ${config.nodeName}, on which NodePorts are to answer`,
      isMet: () => {
        checkPrimaryFamily(node, supported);
        return node.hasAddress;
      },
      timeout: isFixed ? millis(0) : addressTimeout,
    });
  }
  return conditions;
}

function checkPrimaryFamily({ primaryFamily }: OwnNode, supported: readonly IpFamily[]): void {
  if (primaryFamily === undefined || supported.includes(primaryFamily)) return;
  throw new HostError(
    'host.ipFamily',
    `our Node's primary address is ${primaryFamily}, and this machine's kernel has no ${primaryFamily} (missing, or ` +
      'disabled for all interfaces); enable it, or give an address of the other family with --bind-address',
  );
}

/** Refuses pod ranges that are all of a family that this machine does not have. */
function checkClusterCidrs({ detectLocal }: RunConfig, supported: readonly IpFamily[]): void {
  if (detectLocal.kind !== 'clusterCIDR') return;
  const families = Object.keys(detectLocal.cidrs) as readonly IpFamily[]; // the keys of this record
  if (families.length === 0 || families.some((family) => supported.includes(family))) return;
  throw new ConfigError(
    'config.clusterCidr',
    `--cluster-cidr has only ${families.join()} ranges, and this machine has only ${supported.join()}; give the range ` +
      'of the pods of this family, or none',
  );
}

/** kube-proxy refuses this, too: pods of the primary family would not be recognized. */
function checkPodCidrs(node: OwnNode): void {
  const { primaryFamily } = node;
  if (primaryFamily === undefined || node.podCidrOf(primaryFamily) !== undefined) return;
  throw new ConfigError(
    'node.podCidrs',
    `--detect-local-mode=NodeCIDR: our Node's primary address is ${primaryFamily}, and its spec.podCIDRs has none of ` +
      `that family: ${node.podCidrs.join(', ')}; give the Node such a range, or choose another mode`,
  );
}

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
