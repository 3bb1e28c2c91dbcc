import { type Flow, type IpAddress, type IpFamily, ipFamilyOf, parseIp } from '@switchyard/core';
import { nodeAddresses, secondNodeAddresses } from './cluster-objects.ts';
import type { Scenario, ScenarioFlow } from './scenario.ts';

/** The client outside the cluster, in the lab's plan. */
export const outsideAddresses: Readonly<Record<IpFamily, IpAddress>> = {
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

/** The scenario's flow as the oracle and the tracers take it. Without a pod detector a pod is `outside`. */
export function coreFlow(scenario: Scenario, flow: ScenarioFlow): Flow {
  const isLoopback = flow.to === '127.0.0.1' || flow.to === '::1';
  const ipFamily = ipFamilyOf(flow.to);
  const own = [nodeAddresses[ipFamily]['node1'], secondNodeAddresses[ipFamily]];
  return {
    from: flow.from === 'pod' && !scenario.agent.detectsPods ? 'outside' : flow.from,
    source: isLoopback ? flow.to : sourceOf(flow),
    destination: flow.to,
    destinationPort: flow.port,
    protocol: flow.protocol,
    destinationIsLocal: isLoopback || flow.isFromItself || own.includes(flow.to),
  };
}
