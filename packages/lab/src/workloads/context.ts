import type { Clock, Logger, Random } from '@switchyard/core';
import {
  apiResources,
  type Deployment,
  type EndpointSlice,
  type Node,
  type ObjectClient,
  type Pod,
  type Service,
} from '@switchyard/core/kubernetes';
import { createResourceWatch, type ResourceWatch } from './cluster-watch.ts';
import type { TimeScale } from './time-scale.ts';

/** Dependencies shared by all controllers. */
export interface ControllerContext {
  readonly api: ObjectClient;
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
export function createClusterWatches(api: ObjectClient): ClusterWatches {
  return {
    pods: createResourceWatch(api, apiResources.pods),
    nodes: createResourceWatch(api, apiResources.nodes),
    services: createResourceWatch(api, apiResources.services),
    slices: createResourceWatch(api, apiResources.endpointSlices),
    deployments: createResourceWatch(api, apiResources.deployments),
  };
}
