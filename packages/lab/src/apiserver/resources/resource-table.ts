import type { ResourceDefinition } from '../resource.ts';
import { deployments } from './deployments.ts';
import { endpointSlices } from './endpoint-slices.ts';
import { events, newEvents } from './events.ts';
import { leases } from './leases.ts';
import { namespaces } from './namespaces.ts';
import { nodes } from './nodes.ts';
import { pods } from './pods.ts';
import { replicaSets } from './replica-sets.ts';
import { serviceCidrs } from './service-cidrs.ts';
import { services } from './services.ts';

/** All kinds of the server, in the order of discovery. */
export const resourceTable: readonly ResourceDefinition[] = [
  events,
  namespaces,
  nodes,
  pods,
  services,
  deployments,
  replicaSets,
  newEvents,
  serviceCidrs,
  leases,
  endpointSlices,
];
