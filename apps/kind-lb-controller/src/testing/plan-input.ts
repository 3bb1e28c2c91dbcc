import type { V1EndpointSlice } from '@kubernetes/client-node';
import {
  EndpointIndex,
  type EndpointSliceRecord,
  InvariantError,
  ipFamilyOf,
  parseIp,
  type ServiceKey,
} from '@switchyard/core';
import { type LoadBalancerNode, type LoadBalancerService, newSliceProjection } from '../cluster/cluster-objects.ts';
import { healthProfile } from '../health-profile/health-profiles.ts';
import { AddressBook } from '../plan/address-book.ts';
import type { AddressSource } from '../plan/ip-pool.ts';
import { planService } from '../plan/plan-service.ts';
import type { PlanContext, ServicePlan } from '../plan/service-plan.ts';
import type { PlanDefaults, ServiceSettings } from '../plan/settings.ts';
import { loadBalancerKey } from '../spec/load-balancer-spec.ts';

/** One endpoint of a test, such as `10.244.1.5@node1`; after a space ` terminating` (still serving) or ` unready`. */
export type EndpointText = string;

/** A raw EndpointSlice of one port, as the API server sends it. All endpoints are of the first one's family. */
export function rawSlice(service: string, endpoints: readonly EndpointText[], port = 8080, name = ''): V1EndpointSlice {
  const [namespace = '', serviceName = ''] = service.split('/');
  const addressType = ipFamilyOf(parseIp(endpoints[0]?.split(/[@ ]/)[0] ?? '10.0.0.1'));
  return {
    metadata: {
      namespace,
      name: `${serviceName}-${addressType.toLowerCase()}-${name}${port}`,
      labels: { 'kubernetes.io/service-name': serviceName },
    },
    addressType,
    ports: [{ name, port, protocol: 'TCP' }],
    endpoints: endpoints.map((text) => {
      const [place = '', ...states] = text.split(' ');
      const [address = '', nodeName] = place.split('@');
      const isTerminating = states.includes('terminating');
      return {
        addresses: [address],
        ...(nodeName === undefined ? {} : { nodeName }),
        conditions: {
          ready: !isTerminating && !states.includes('unready'),
          serving: !states.includes('unready'),
          terminating: isTerminating,
        },
      };
    }),
  };
}

/** The same, projected. */
export function lbSlice(
  service: string,
  endpoints: readonly EndpointText[],
  port?: number,
  name?: string,
): EndpointSliceRecord {
  const projected = newSliceProjection()(rawSlice(service, endpoints, port, name));
  if (projected.status !== 'record') throw new InvariantError(`the test's slice of ${service} was refused`);
  return projected.record;
}

/** The controller's own profile is `cloud-provider-kind` without changes; no fast drain, nothing is published. */
export const planDefaults: PlanDefaults = {
  healthProfileOf: (name = 'cloud-provider-kind', changes) => healthProfile(name, changes),
  isFastDrain: false,
  isPublished: false,
};

/** A cluster of a test. */
export interface PlanInput {
  readonly services: readonly LoadBalancerService[];
  readonly nodes: readonly LoadBalancerNode[];
  readonly slices?: readonly EndpointSliceRecord[];
  readonly source: AddressSource;
  readonly defaults?: Partial<PlanDefaults>;
  readonly lastSettings?: ServiceSettings;
}

/** Plans all Services of the cluster `kind`, with a new address book; ordered by key. */
export function planOf(input: PlanInput): readonly ServicePlan[] {
  const slices = new EndpointIndex();
  for (const slice of input.slices ?? []) slices.upsert(slice);
  const book = new AddressBook();
  book.observe('kind', input.services);
  const grants = book.assign(input.source);
  const context: PlanContext = {
    cluster: 'kind',
    nodes: new Map(input.nodes.map((node) => [node.name, node])),
    slices,
    grantOf: (service: ServiceKey) => grants.get(loadBalancerKey({ cluster: 'kind', service })),
    defaults: { ...planDefaults, ...input.defaults },
    lastSettingsOf: () => input.lastSettings,
  };
  return input.services
    .toSorted((a, b) => (a.record.key < b.record.key ? -1 : 1))
    .map((service) => planService(service, context));
}
