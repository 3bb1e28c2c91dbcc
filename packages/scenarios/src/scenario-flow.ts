import { assertNever, type Flow, type IpAddress, type IpFamily, ipFamilyOf, parseIp } from '@switchyard/core';
import { nodeAddresses, secondNodeAddresses } from './cluster-objects.ts';
import type { Scenario, ScenarioFlow } from './scenario.ts';

/** The client outside the cluster, in the lab's plan. */
const outsideAddresses: Readonly<Record<IpFamily, IpAddress>> = {
  IPv4: parseIp('172.18.0.100'),
  IPv6: parseIp('fd00:172:18::100'),
};

/** A pod on the node under test that is nobody's endpoint. */
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

/** In the lab the pod that is nobody's endpoint is behind this bridge; the others have cables of their own. */
export const clientPodBridge = 'cni0';
/** How the node's ends of the pods' cables are called in the lab, with a number behind. */
const podInterfacePrefix = 'pod';

/** The interface by which the node under test gets a flow; undefined for what it sends itself. */
function incomingInterfaceOf({ from, fromEndpoint }: ScenarioFlow): string | undefined {
  if (from === 'node') return undefined;
  if (from === 'outside') return 'eth0';
  return fromEndpoint === undefined ? clientPodBridge : `${podInterfacePrefix}1`;
}

/** Whether the agent can tell that this sender, a pod or not, is one. */
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

/** The scenario's flow as the oracle and the tracers take it. A pod that nobody can tell is `outside`. */
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
