import { assertNever, type Flow, type IpAddress, type IpFamily, ipFamilyOf, parseIp } from '@switchyard/core';
import { nodeAddresses, secondNodeAddresses } from './cluster-objects.ts';
import type { Scenario, ScenarioFlow } from './scenario.ts';

/** The client outside the cluster, in the lab's plan. */
const outsideAddresses: Readonly<Record<IpFamily, IpAddress>> = {
  IPv4: parseIp('172.18.0.100'),
  IPv6: parseIp('fd00:172:18::100'),
};

/** A pod on the node under test that is not an endpoint. */
export const clientPodAddresses: Readonly<Record<IpFamily, IpAddress>> = {
  IPv4: parseIp('10.244.1.250'),
  IPv6: parseIp('fd00:10:244:1::250'),
};

/** The address a flow comes from. */
export function sourceOf(flow: ScenarioFlow): IpAddress {
  const ipFamily = ipFamilyOf(flow.to);
  if (flow.fromEndpoint !== undefined) return flow.fromEndpoint;
  if (flow.isFromItself) return flow.to;
  switch (flow.from) {
    case 'outside':
      return outsideAddresses[ipFamily];
    case 'pod':
      return clientPodAddresses[ipFamily];
    case 'node':
      return parseIp(nodeAddresses[ipFamily]['node1'] ?? '');
  }
}

/** Bridge of the pod that is not an endpoint, in the lab; the other pods have their own veth pairs. */
export const clientPodBridge = 'cni0';
/** Prefix of the node's ends of the pods' veth pairs in the lab, followed by a number. */
const podInterfacePrefix = 'pod';

/** Interface on which the node under test receives a flow; undefined for its own flows. */
function incomingInterfaceOf({ from, fromEndpoint }: ScenarioFlow): string | undefined {
  if (from === 'node') return undefined;
  if (from === 'outside') return 'eth0';
  return fromEndpoint === undefined ? clientPodBridge : `${podInterfacePrefix}1`;
}

/** Whether the agent recognizes this sender as a pod. */
function isSeenAsPod({ agent }: Scenario, flow: ScenarioFlow): boolean {
  const { detectLocal } = agent;
  const incoming = incomingInterfaceOf(flow) ?? '';
  switch (detectLocal.kind) {
    case 'none':
      return false;
    case 'clusterCIDR':
    case 'nodeCIDR': // all senders are on the node under test
      return flow.from === 'pod';
    case 'bridgeInterface':
      return incoming === detectLocal.name;
    case 'interfaceNamePrefix':
      return incoming.startsWith(detectLocal.prefix);
    default:
      return assertNever(detectLocal);
  }
}

/** Returns the scenario's flow in the form of the oracle and the tracers. A pod that is not recognized is `outside`. */
export function coreFlow(scenario: Scenario, flow: ScenarioFlow): Flow {
  const isLoopback = flow.to === '127.0.0.1' || flow.to === '::1';
  const ipFamily = ipFamilyOf(flow.to);
  const own = [nodeAddresses[ipFamily]['node1'], secondNodeAddresses[ipFamily]];
  return {
    from: isSeenAsPod(scenario, flow) ? 'pod' : flow.from === 'pod' ? 'outside' : flow.from,
    incomingInterface: incomingInterfaceOf(flow),
    isSentHere: flow.from !== 'outside', // all pods that send are node1's
    source: isLoopback ? flow.to : sourceOf(flow),
    destination: flow.to,
    destinationPort: flow.port,
    protocol: flow.protocol,
    destinationIsLocal: isLoopback || flow.isFromItself || own.includes(flow.to),
  };
}
