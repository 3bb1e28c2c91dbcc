import { type Logger, noopLogger, systemClock } from '@switchyard/core';
import { apiResources, type ObjectClient, type Pod } from '@switchyard/core/kubernetes';
import type { Lab } from '../lab.ts';
import { type ControllerContext, createClusterWatches, createResourceWatch } from './context.ts';
import { startDaemonSetController } from './daemon-set-controller.ts';
import { startDeploymentController } from './deployment-controller.ts';
import { startEndpointSliceController } from './endpointslice-controller.ts';
import { createEventFeed, podEvents, type WorkloadEvent } from './workload-event.ts';
import { Kubelet, registerNode } from './kubelet/kubelet.ts';
import { startScheduler } from './scheduler.ts';
import { apiTime, timeScale } from './facts.ts';

/** Options of the workloads. */
export interface WorkloadsOptions {
  readonly lab: Lab;
  readonly api: ObjectClient;
  /** 1 (default) is real time; 0.1 makes every duration of a manifest a tenth. */
  readonly timeScale?: number;
  /** Called at once with every event, before any reader of `events`. */
  readonly onEvent?: ((event: WorkloadEvent) => void) | undefined;
  readonly log?: Logger;
  /** Also runs a DaemonSet controller; the server has to serve the kind. Default false. */
  readonly hasDaemonSets?: boolean;
}

/**
 * The controllers of a small cluster: deployments, scheduler, EndpointSlices, and one kubelet per node of the lab.
 * Disposing stops them, kills the pods' processes and removes their namespaces; the API's objects stay, and
 * workloads started later on the same lab continue with them.
 */
export interface Workloads extends AsyncDisposable {
  /** Events from this call on, in the order of observation. Ends without an error when `signal` aborts. */
  events(signal: AbortSignal): AsyncIterable<WorkloadEvent>;
}

/**
 * Registers the lab's nodes, starts all controllers and resolves when each has listed the whole cluster. `signal` has
 * no effect after the start.
 */
export async function startWorkloads(options: WorkloadsOptions, signal: AbortSignal): Promise<Workloads> {
  const { lab, api, log = noopLogger } = options;
  const clock = systemClock;
  const watches = createClusterWatches(api);
  const daemonSets = options.hasDaemonSets === true ? createResourceWatch(api, apiResources.daemonSets) : undefined;
  const all = [...Object.values(watches), ...(daemonSets === undefined ? [] : [daemonSets])];
  const context: ControllerContext = {
    api,
    watches,
    clock,
    log,
    random: Math.random,
    scale: timeScale(options.timeScale ?? 1),
  };
  for (const node of lab.nodes) await registerNode(api, node, apiTime(clock.now()), signal);
  const feed = createEventFeed(options.onEvent);
  const stop = new AbortController();
  await using stack = new AsyncDisposableStack();
  watches.pods.subscribe(({ before, after }) => {
    for (const event of podEvents(before, after, clock.now())) feed.emit(event);
  });
  const slices = stack.use(startEndpointSliceController(context));
  const settle = async (pods: readonly Pod[]): Promise<void> =>
    void (await Promise.all(pods.map((pod) => slices.settle(pod))));
  stack.use(startDeploymentController(context, settle));
  if (daemonSets !== undefined) stack.use(startDaemonSetController(context, daemonSets, settle));
  stack.use(startScheduler(context));
  for (const node of lab.nodes) stack.use(new Kubelet(context, { lab, node, emit: feed.emit }));
  const following = Promise.all(all.map((watch) => watch.run(stop.signal)));
  following.catch((error: unknown) => log.error('watching the cluster failed; the workloads have stopped', { error }));
  stack.defer(async () => {
    stop.abort();
    await following.catch(() => undefined);
  });
  const abort = (): void => stop.abort();
  signal.addEventListener('abort', abort, { once: true });
  await Promise.all(all.map(({ listed }) => listed));
  signal.removeEventListener('abort', abort);
  const owned = stack.move();
  return {
    events: (inner) => feed.read(AbortSignal.any([inner, stop.signal])),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
