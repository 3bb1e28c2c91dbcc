import { objectArgument, requireList } from '../../base/argument.ts';
import { loopbackAddress } from '../ip/cidr.ts';
import type { Port } from '../ip/port.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { Flow } from './explain-types.ts';
import type { Endpoint, ForwardingTable, ServiceForwarding } from './forwarding-table.ts';

/** One NodePort that the agent serves on the loopback address (KEP-6032). */
export interface LoopbackNodePort {
  readonly service: ServicePortKey;
  readonly port: Port;
  /** One of these gets a connection, at random or by affinity; never empty. */
  readonly endpoints: readonly Endpoint[];
  readonly sessionAffinity: ServiceForwarding['sessionAffinity'];
}

/**
 * Returns the NodePort of a Service port as the loopback proxy serves it, by the decision for senders outside: with
 * `externalTrafficPolicy: Local` only endpoints on this node are used (KEP-6032), unlike at the node's other addresses.
 * Undefined where there is no listener, so that the kernel refuses connections: no NodePort, another protocol than TCP, no
 * usable endpoint. Throws `UsageError` for what is no `ServiceForwarding`.
 */
export function loopbackNodePort(service: ServiceForwarding): LoopbackNodePort | undefined {
  requireList('loopbackNodePort: service.frontends', objectArgument('loopbackNodePort: service', service)['frontends']);
  if (service.protocol !== 'TCP') return undefined;
  const frontend = service.frontends.find(({ kind }) => kind === 'nodePort');
  const decision = frontend?.decisions.outside;
  if (frontend === undefined || decision?.kind !== 'forward') return undefined;
  const { key, endpoints, sessionAffinity } = service;
  return { service: key, port: frontend.port, endpoints: endpoints[decision.to], sessionAffinity };
}

/** Whether the loopback proxy of this table serves NodePorts at the destination of the flow. */
export function isLoopbackProxied(table: ForwardingTable, { destination, protocol }: Flow): boolean {
  return table.nodePortsOnLoopback === 'proxy' && protocol === 'TCP' && destination === loopbackAddress(table.ipFamily);
}
