import { apiResources, type OwnerReference, type Pod } from '@switchyard/core/kubernetes';
import type { ControllerContext } from './context.ts';
import { reconcileDeployment } from './deployment-reconcile.ts';
import { KeyedRunner } from './keyed-runner.ts';
import { controllerOf, objectKey, splitKey } from './pod-facts.ts';
import { followReadySince } from './ready-since.ts';

/** Inputs from other controllers. */
export interface DeploymentControllerOptions {
  /** Resolves when the EndpointSlices show the current state of `pods`. */
  readonly settleSlices: (pods: readonly Pod[]) => Promise<void>;
}

/**
 * Starts the deployment controller. It creates pods directly, without ReplicaSet objects; the
 * `pod-template-hash` label replaces them.
 */
export function startDeploymentController(
  context: ControllerContext,
  options: DeploymentControllerOptions,
): AsyncDisposable {
  const { pods, deployments } = context.watches;
  const readySince = followReadySince(pods, context.clock);
  const runner = new KeyedRunner({
    name: 'deployment',
    clock: context.clock,
    log: context.log,
    run: async (key, signal) => {
      const { namespace, name } = splitKey(key);
      const [deployment, listed] = await Promise.all([
        context.api.find(apiResources.deployments, { namespace, name }, signal),
        context.api.list(apiResources.pods, { namespace }, signal),
      ]);
      // The API server's garbage collection removes the pods of a deleted Deployment.
      if (deployment === undefined || deployment.metadata.deletionTimestamp !== undefined) return undefined;
      const isOwn = (pod: Pod): boolean => ownerDeployment(pod)?.uid === deployment.metadata.uid;
      const work = { deployment, pods: listed.items.filter(isOwn), context, readySince, ...options };
      return reconcileDeployment(work, signal);
    },
  });
  deployments.subscribe(({ before, after }) => {
    const deployment = after ?? before;
    if (deployment !== undefined) runner.poke(objectKey(deployment));
  });
  pods.subscribe(({ before, after }) => {
    const pod = after ?? before;
    if (pod === undefined) return;
    const owner = ownerDeployment(pod);
    if (owner !== undefined) runner.poke(`${pod.metadata.namespace ?? 'default'}/${owner.name}`);
  });
  return runner;
}

/** Returns the Deployment that created the pod. */
export function ownerDeployment(pod: Pod): OwnerReference | undefined {
  const owner = controllerOf(pod);
  return owner?.kind === 'Deployment' ? owner : undefined;
}
