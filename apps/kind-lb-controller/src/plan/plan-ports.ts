import {
  compareIps,
  type EndpointSliceRecord,
  ipFamilyOf,
  type Port,
  type ServicePortRecord,
  type ServiceRecord,
  compareTexts,
} from '@switchyard/core';
import type { PortSpec, RouteSpec, Target } from '../spec/load-balancer-spec.ts';
import { endpointTargets } from './endpoint-targets.ts';
import type { AddressGrant } from './ip-pool.ts';
import { drainingNodes, type FamilyNodes, nodeTargets } from './node-targets.ts';
import type { Problem } from './problem.ts';
import { isFastDrained, type ServiceSettings } from './settings.ts';

/** Inputs for the ports of a load balancer. */
export interface PortsInput {
  readonly record: ServiceRecord;
  readonly grant: AddressGrant;
  readonly settings: ServiceSettings;
  /** On each node. */
  readonly checkPort: Port;
  /** One for each address of the grant. */
  readonly families: readonly FamilyNodes[];
  /** Of the Service. */
  readonly slices: readonly EndpointSliceRecord[];
}

/** The ports of a load balancer, and what they need. */
export interface PlannedPorts {
  /** Sorted by port, then protocol; those that can be served on at least one address. */
  readonly ports: readonly PortSpec[];
  /** Sorted, each destination once. */
  readonly routes: readonly RouteSpec[];
  /** In order of the ports. */
  readonly problems: readonly Problem[];
}

/** Plans the ports of one Service, on the addresses it was given. */
export function planPorts(input: PortsInput): PlannedPorts {
  const ports: PortSpec[] = [];
  const problems: Problem[] = [];
  const routes = new Map<string, RouteSpec>();
  for (const port of [...input.record.ports].sort(comparePorts)) {
    const conflicts = input.grant.conflicts.filter((one) => one.port === port.port && one.protocol === port.protocol);
    const addresses = input.grant.addresses.filter((address) => conflicts.every((one) => one.address !== address));
    problems.push(...conflicts.map((conflict) => ({ kind: 'portConflict', ...conflict }) as const));
    if (addresses.length === 0) continue;
    const served = new Set(addresses.map(ipFamilyOf));
    const planned = input.families
      .filter(({ ipFamily }) => served.has(ipFamily))
      .map((nodes) => planTargets(port, nodes, input));
    ports.push({
      port: port.port,
      protocol: port.protocol,
      addresses,
      targets: planned.flatMap(({ targets }) => targets),
    });
    problems.push(...planned.flatMap((one) => one.problems));
    for (const route of planned.flatMap((one) => one.routes)) routes.set(route.destination, route);
  }
  return { ports, routes: [...routes.values()].sort(compareRoutes), problems };
}

interface PlannedTargets {
  readonly targets: readonly Target[];
  readonly routes: readonly RouteSpec[];
  readonly problems: readonly Problem[];
}

/** The targets of one port in one family. */
function planTargets(port: ServicePortRecord, nodes: FamilyNodes, input: PortsInput): PlannedTargets {
  const { record, settings, checkPort } = input;
  const slices = input.slices.filter(({ ipFamily }) => ipFamily === nodes.ipFamily);
  const targetPort = settings.path === 'transparent' ? port.port : port.nodePort;
  if (targetPort !== undefined) {
    const draining = isFastDrained(record, settings) ? drainingNodes(nodes, slices, port) : new Map<never, never>();
    return { targets: nodeTargets(nodes, { targetPort, checkPort, draining }), routes: [], problems: [] };
  }
  const policy = record.externalTrafficPolicy;
  const { targets, routes, withoutNode } = endpointTargets(nodes, { slices, port, policy, checkPort });
  const place = { port: port.port, protocol: port.protocol };
  const problems: Problem[] = [];
  if (withoutNode.length > 0) problems.push({ kind: 'endpointsWithoutNode', ...place, addresses: withoutNode });
  if (targets.length === 0 && nodes.usable.length > 0) {
    problems.push({ kind: 'noEndpoints', ...place, ipFamily: nodes.ipFamily });
  }
  return { targets, routes, problems };
}

function comparePorts(a: ServicePortRecord, b: ServicePortRecord): number {
  return a.port - b.port || compareTexts(a.protocol, b.protocol);
}

function compareRoutes(a: RouteSpec, b: RouteSpec): number {
  return compareIps(a.via, b.via) || compareTexts(a.destination, b.destination);
}
