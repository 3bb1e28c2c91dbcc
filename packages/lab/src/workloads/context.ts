import type { Clock, Logger, Random } from '@switchyard/core';
import { type ApiClient, apiResources } from '../api-client.ts';
import type { Deployment, EndpointSlice, Node, Pod, Service } from '../api-types.ts';
import { createResourceWatch, type ResourceWatch } from './cluster-watch.ts';
import type { TimeScale } from './time-scale.ts';

/** What every controller is given. */
export interface ControllerContext {
  readonly api: ApiClient;
  readonly watches: ClusterWatches;
  readonly scale: TimeScale;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** One shared watch per resource. */
export interface ClusterWatches {
  readonly pods: ResourceWatch<Pod>;
  readonly nodes: ResourceWatch<Node>;
  readonly services: ResourceWatch<Service>;
  readonly slices: ResourceWatch<EndpointSlice>;
  readonly deployments: ResourceWatch<Deployment>;
}

/** Watches that do not run yet. */
export function createClusterWatches(api: ApiClient): ClusterWatches {
  return {
    pods: createResourceWatch(api, apiResources.pods),
    nodes: createResourceWatch(api, apiResources.nodes),
    services: createResourceWatch(api, apiResources.services),
    slices: createResourceWatch(api, apiResources.endpointSlices),
    deployments: createResourceWatch(api, apiResources.deployments),
  };
}
