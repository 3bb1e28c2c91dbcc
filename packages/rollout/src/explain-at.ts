import { buildTable, ClusterState, explain, type IpAddress, nodeName, parseCidr, parseIp } from '@switchyard/core';
import { clusterCidrs } from '@switchyard/lab';
import { dataplaneNamed } from '@switchyard/scenarios';
import { stateAt } from './rollout/observe.ts';
import type { ExplainAt } from './summarise.ts';

/** Addresses that an explanation needs. */
export interface ExplainSettings {
  readonly nodeAddresses: ReadonlyMap<string, IpAddress>;
  /** The load balancer: the sender that a node sees. */
  readonly loadBalancer: IpAddress;
  readonly clusterCidr: string;
}

/** The addresses every lab of the experiment has. */
export const labSettings: ExplainSettings = {
  nodeAddresses: new Map([
    ['node1', parseIp('172.18.0.11')],
    ['node2', parseIp('172.18.0.12')],
  ]),
  loadBalancer: parseIp('172.18.0.50'),
  clusterCidr: clusterCidrs.IPv4,
};

/**
 * Explains what the node's dataplane (for the load balancer: the old node's) had to do with a connection from outside at a time. Uses
 * the policy code of the agent with the objects that a separate watch saw.
 */
export function explainFrom(settings: ExplainSettings): ExplainAt {
  return (run, at) => {
    const state = stateAt(run.states, at);
    const { path } = run;
    // The source of packets to a cluster IP is unknown; a load balancer sends to the old node.
    if (path.kind === 'node' && path.frontend === 'clusterIP') return [];
    const node = path.kind === 'node' ? path.node : run.moves[0].oldPod.node;
    const service = state?.service;
    const nodePort = service?.ports[0]?.nodePort;
    const destination = settings.nodeAddresses.get(node);
    if (state === undefined || service === undefined || nodePort === undefined || destination === undefined) {
      return [`nothing was known about the Service on ${node} at that time`];
    }
    const cluster = new ClusterState({ nodeName: nodeName(node) });
    cluster.apply([
      { kind: 'replace', resource: 'Service', items: [service] },
      { kind: 'replace', resource: 'EndpointSlice', items: state.slices },
      { kind: 'replace', resource: 'Node', items: [] },
      { kind: 'replace', resource: 'ServiceCIDR', items: [] },
    ]);
    const isIpv6 = destination.includes(':');
    const table = buildTable(cluster, 'all', undefined, {
      ipFamily: isIpv6 ? 'IPv6' : 'IPv4',
      nodeName: nodeName(node),
      masqueradeAll: false,
      terminatingFallback: run.settings.terminatingFallback ? 'on' : 'off',
      externalIps: 'forward',
      podDetector: { kind: 'cidr', cidr: parseCidr(settings.clusterCidr) },
      nodePortCidrs: [parseCidr(isIpv6 ? '::/0' : '0.0.0.0/0')],
    });
    const explanation = explain(
      table,
      {
        from: 'outside',
        source: settings.loadBalancer,
        destination,
        destinationPort: nodePort,
        protocol: 'TCP',
        destinationIsLocal: true,
      },
      dataplaneNamed(run.settings.proxyMode),
    );
    return [...explanation.reasons.map((reason) => reason.text), `verdict on ${node}: ${explanation.verdict.kind}`];
  };
}
