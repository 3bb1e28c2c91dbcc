import { ApiServerError } from '@switchyard/core';
import { apiResources } from '../api-client.ts';
import type { Deployment, Pod } from '../api-types.ts';
import type { ControllerContext } from './context.ts';
import { controllerOf, isPodTerminating } from './pod-facts.ts';

const foreground = 'foregroundDeletion';
const orphan = 'orphan';

/**
 * The garbage collector's part. `pods` are all whose controller is a Deployment of this name: those of a Deployment that
 * is gone (or was made anew) are deleted; with Foreground the pods go first and then the finalizer, with
 * Orphan the pods are let go.
 */
export async function finishDeletion(
  deployment: Deployment | undefined,
  pods: readonly Pod[],
  context: ControllerContext,
  signal: AbortSignal,
): Promise<void> {
  const uid = deployment?.metadata.uid;
  const strays = pods.filter((pod) => controllerOf(pod)?.uid !== uid);
  await Promise.all(strays.map((pod) => deletePod(pod, context, signal)));
  if (deployment?.metadata.deletionTimestamp === undefined) return;
  const own = pods.filter((pod) => controllerOf(pod)?.uid === uid);
  const finalizers = deployment.metadata.finalizers ?? [];
  if (finalizers.includes(orphan)) {
    for (const pod of own) await letGo(pod, context, signal);
    await dropFinalizer(deployment, orphan, context, signal);
  } else if (finalizers.includes(foreground)) {
    await Promise.all(own.map((pod) => deletePod(pod, context, signal)));
    if (own.length === 0) await dropFinalizer(deployment, foreground, context, signal);
  }
}

/** Asks for graceful deletion once; a pod that is already going or gone is fine. */
export async function deletePod(pod: Pod, { api }: ControllerContext, signal: AbortSignal): Promise<void> {
  if (isPodTerminating(pod)) return;
  const { namespace, name = '' } = pod.metadata;
  await api.delete(apiResources.pods, { namespace, name }, {}, signal).catch((error: unknown) => {
    if (!(error instanceof ApiServerError && error.status === 404)) throw error;
  });
}

async function letGo(pod: Pod, { api }: ControllerContext, signal: AbortSignal): Promise<void> {
  const ownerReferences = (pod.metadata.ownerReferences ?? []).filter((owner) => owner.controller !== true);
  await api.update(apiResources.pods, { ...pod, metadata: { ...pod.metadata, ownerReferences } }, signal);
}

async function dropFinalizer(
  deployment: Deployment,
  finalizer: string,
  { api }: ControllerContext,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = (deployment.metadata.finalizers ?? []).filter((one) => one !== finalizer);
  const next = { ...deployment, metadata: { ...deployment.metadata, finalizers } };
  await api.update(apiResources.deployments, next, signal);
}
