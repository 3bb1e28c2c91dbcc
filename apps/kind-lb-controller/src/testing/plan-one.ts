import { addressAndPort, parseCidr } from '@switchyard/core';
import type { LoadBalancerNode } from '../cluster/cluster-objects.ts';
import type { AddressSource } from '../plan/ip-pool.ts';
import { problemText } from '../plan/problem.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import type { LoadBalancerSpec, PortSpec } from '../spec/load-balancer-spec.ts';
import { lbNode, lbService, type RawServiceSpec } from './builders.ts';
import { planOf, type PlanInput } from './plan-input.ts';

/** The `spec` of a raw Service. */
export type RawSpec = NonNullable<RawServiceSpec['spec']>;

/** Addresses of both families. */
export const pool: AddressSource = { kind: 'pool', cidrs: ['172.18.255.0/24', 'fd00:172:18:ff::/112'].map(parseCidr) };

/** A Node of both families with ranges for its pods. */
export const node1: LoadBalancerNode = lbNode('node1', ['172.18.0.11', 'fd00:172:18::11'], {
  spec: { podCIDRs: ['10.244.1.0/24', 'fd00:10:244:1::/64'] },
});

/** Another one. */
export const node2: LoadBalancerNode = lbNode('node2', ['172.18.0.12', 'fd00:172:18::12'], {
  spec: { podCIDRs: ['10.244.2.0/24', 'fd00:10:244:2::/64'] },
});

/** A Node that asks to be left out. */
export const labelled: LoadBalancerNode = lbNode('control-plane', ['172.18.0.2'], {
  metadata: { labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } },
});

/** `externalTrafficPolicy: Local`. */
export const local: RawSpec = { externalTrafficPolicy: 'Local', healthCheckNodePort: 32080 };

/** `allocateLoadBalancerNodePorts: false`. */
export const withoutNodePort: RawSpec = {
  allocateLoadBalancerNodePorts: false,
  ports: [{ port: 80, protocol: 'TCP' }],
};

/** Metadata with own annotations, named without their prefix. */
export function annotated(annotations: Readonly<Record<string, string>>): NonNullable<RawServiceSpec['metadata']> {
  const full = Object.entries(annotations).map(([name, value]) => [`lb.switchyard.dev/${name}`, value]);
  return { annotations: Object.fromEntries(full) };
}

/** The plan of the Service `default/web`, on both nodes and the pool unless said otherwise. */
export function plan(parts: RawServiceSpec, input: Partial<PlanInput> = {}): ServicePlan {
  const [first] = planOf({
    services: [lbService('default/web', parts)],
    nodes: [node2, node1],
    source: pool,
    ...input,
  });
  if (first === undefined) throw new Error('there is no plan');
  return first;
}

/** The spec of a plan that has one. */
export function specOf({ planned }: ServicePlan): LoadBalancerSpec {
  if (planned.status !== 'run') throw new Error(`the plan says ${planned.status}`);
  return planned.spec;
}

/** Per port a line with its addresses, then one for each target. */
export function portLines(one: ServicePlan): readonly string[] {
  return specOf(one).ports.flatMap(linesOf);
}

/** The texts of a plan's problems. */
export function problemsOf({ problems }: ServicePlan): readonly string[] {
  return problems.map((one) => problemText(one, 'kind'));
}

function linesOf({ port, protocol, addresses, targets }: PortSpec): readonly string[] {
  return [
    `${addresses.join(' ')} ${port}/${protocol}`,
    ...targets.map(
      ({ name, node, address, port: to, check, draining }) =>
        `${name}${name === node ? '' : ` on ${node}`} ${addressAndPort(address, to)} check ${addressAndPort(check.address, check.port)}${check.path}${draining === 'no' ? '' : ` ${draining}`}`,
    ),
  ];
}
