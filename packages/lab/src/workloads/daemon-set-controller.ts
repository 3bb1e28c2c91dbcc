import { apiResources, type DaemonSet, type OwnerReference, type Pod } from '@switchyard/core/kubernetes';
import type { ResourceWatch } from './cluster-watch.ts';
import type { ControllerContext } from './context.ts';
import { reconcileDaemonSet } from './daemon-set-reconcile.ts';
import { KeyedRunner } from './keyed-runner.ts';
import { controllerOf, objectKey, splitKey } from './pod-facts.ts';
import { followReadySince } from './ready-since.ts';

/** Inputs from other controllers. */
export interface DaemonSetControllerOptions {
  /** The caller runs the watch. */
  readonly daemonSets: ResourceWatch<DaemonSet>;
  /** Resolves when the EndpointSlices show the current state of `pods`. */
  readonly settleSlices: (pods: readonly Pod[]) => Promise<void>;
}

/**
 * Starts the DaemonSet controller: a pod on every matching node, rolling updates by `maxUnavailable` or `maxSurge`.
 * It creates no ControllerRevisions; the `controller-revision-hash` label replaces them.
 */
export function startDaemonSetController(
  context: ControllerContext,
  { daemonSets, settleSlices }: DaemonSetControllerOptions,
): AsyncDisposable {
  const { pods, nodes } = context.watches;
  const readySince = followReadySince(pods, context.clock);
  const runner = new KeyedRunner({
    name: 'daemonset',
    clock: context.clock,
    log: context.log,
    run: async (key, signal) => {
      const { namespace, name } = splitKey(key);
      const [daemonSet, listed, listedNodes] = await Promise.all([
        context.api.find(apiResources.daemonSets, { namespace, name }, signal),
        context.api.list(apiResources.pods, { namespace }, signal),
        context.api.list(apiResources.nodes, {}, signal),
      ]);
      // The API server's garbage collection removes the pods of a deleted DaemonSet.
      if (daemonSet === undefined || daemonSet.metadata.deletionTimestamp !== undefined) return undefined;
      const isOwn = (pod: Pod): boolean => ownerDaemonSet(pod)?.uid === daemonSet.metadata.uid;
      const own = { pods: listed.items.filter(isOwn), nodes: listedNodes.items };
      return reconcileDaemonSet({ daemonSet, ...own, context, readySince, settleSlices }, signal);
    },
  });
  daemonSets.subscribe(({ before, after }) => {
    const daemonSet = after ?? before;
    if (daemonSet !== undefined) runner.poke(objectKey(daemonSet));
  });
  pods.subscribe(({ before, after }) => {
    const pod = after ?? before;
    const owner = pod === undefined ? undefined : ownerDaemonSet(pod);
    if (owner !== undefined) runner.poke(`${pod?.metadata.namespace ?? 'default'}/${owner.name}`);
  });
  nodes.subscribe(() => {
    for (const daemonSet of daemonSets.values()) runner.poke(objectKey(daemonSet));
  });
  return runner;
}

function ownerDaemonSet(pod: Pod): OwnerReference | undefined {
  const owner = controllerOf(pod);
  return owner?.kind === 'DaemonSet' ? owner : undefined;
}
