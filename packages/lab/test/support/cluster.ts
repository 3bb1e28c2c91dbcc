import { type Logger, noopLogger } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type ManualClock, settle } from '@switchyard/core/testing';
import { type ControllerContext, createClusterWatches, createResourceWatch } from '../../src/workloads/context.ts';
import { startDaemonSetController } from '../../src/workloads/daemon-set-controller.ts';
import { startDeploymentController } from '../../src/workloads/deployment-controller.ts';
import { startEndpointSliceController } from '../../src/workloads/endpointslice-controller.ts';
import { timeScale } from '../../src/workloads/facts.ts';
import { createMemoryApi, type MemoryApi } from './memory-api.ts';

/** Deployment, DaemonSet and EndpointSlice controllers on an API in memory; the test plays scheduler and kubelet. */
export interface TestCluster extends AsyncDisposable {
  readonly api: MemoryApi;
  /** Lets the controllers do all that they can without time passing. */
  settle(): Promise<void>;
}

/** Starts the controllers; `api` continues an earlier cluster. */
export async function startTestCluster(
  clock: ManualClock,
  options: { readonly api?: MemoryApi; readonly timeScale?: number; readonly log?: Logger } = {},
): Promise<TestCluster> {
  const api = options.api ?? createMemoryApi(clock);
  const watches = createClusterWatches(api);
  const daemonSets = createResourceWatch(api, apiResources.daemonSets);
  const all = [...Object.values(watches), daemonSets];
  let seed = 1;
  const random = (): number => {
    seed = (seed * 48_271) % 0x7fffffff;
    return seed / 0x7fffffff;
  };
  const scale = timeScale(options.timeScale ?? 1);
  const context: ControllerContext = { api, watches, clock, random, scale, log: options.log ?? noopLogger };
  const slices = startEndpointSliceController(context);
  const settleSlices = async (pods: readonly Parameters<typeof slices.settle>[0][]): Promise<void> => {
    await Promise.all(pods.map((pod) => slices.settle(pod)));
  };
  const deployments = startDeploymentController(context, settleSlices);
  const daemons = startDaemonSetController(context, daemonSets, settleSlices);
  const stop = new AbortController();
  const following = Promise.all(all.map((watch) => watch.run(stop.signal)));
  await Promise.all(all.map(({ listed }) => listed));
  const cluster: TestCluster = {
    api,
    settle: async () => {
      for (let quiet = 0, seen = -1; quiet < 3;) {
        await settle();
        quiet = api.events.length === seen ? quiet + 1 : 0;
        seen = api.events.length;
      }
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await following;
      await deployments[Symbol.asyncDispose]();
      await daemons[Symbol.asyncDispose]();
      await slices[Symbol.asyncDispose]();
    },
  };
  await cluster.settle();
  return cluster;
}
