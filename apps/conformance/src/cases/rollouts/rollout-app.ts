import { millis } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import { type App, awaitCondition, type LoadTarget, type PodPlace } from '@switchyard/rollout';
import { removeApp, type RolloutSite, servingPods } from '@switchyard/rollout';
import type { HoldTarget } from '../../model/rollout.ts';

/** Longest wait until pods are ready, and until all are removed. */
const readyTimeout = millis(90_000);

/** Where connections by the same path stay open. */
export function hold({ path, from, address }: LoadTarget, echo: number): HoldTarget {
  return { path: path.name, from, address, port: echo };
}

/** Waits for the app's first pods. */
export async function whenReady(experiment: RolloutSite, app: App, signal: AbortSignal): Promise<readonly PodPlace[]> {
  const wanted = app.workload === 'deployment' ? 1 : experiment.nodes.length;
  return awaitCondition(
    `${wanted} ready pods of ${app.name}`,
    async () => {
      const pods = servingPods(experiment.workloadEvents, app.name);
      return pods.length >= wanted ? pods : undefined;
    },
    { timeout: readyTimeout, programs: [], signal },
  );
}

/** The cluster IP and the NodePorts that the API server gave to an app. */
export async function portsOf(
  { api }: RolloutSite,
  app: App,
  signal: AbortSignal,
): Promise<{ readonly nodePorts: { readonly http: number; readonly echo: number }; readonly clusterIp: string }> {
  const { spec } = await api.get(apiResources.services, app, signal);
  const nodePort = (name: string): number => spec?.ports?.find((one) => one.name === name)?.nodePort ?? 0;
  return { nodePorts: { http: nodePort('http'), echo: nodePort('echo') }, clusterIp: spec?.clusterIP ?? '' };
}

/** Removes the app's objects and ends its processes without waiting for their grace periods. */
export async function leaveNothing(experiment: RolloutSite, app: App): Promise<void> {
  const { api } = experiment;
  const signal = AbortSignal.timeout(readyTimeout);
  await removeApp(experiment, app, signal);
  const isGone = async (): Promise<true | undefined> => {
    const [service, pods] = await Promise.all([
      api.find(apiResources.services, app, signal),
      api.list(apiResources.pods, { namespace: app.namespace, labelSelector: `app=${app.name}` }, signal),
    ]);
    for (const { metadata } of pods.items) {
      const pod = { namespace: app.namespace, name: metadata.name ?? '' };
      await api.delete(apiResources.pods, pod, { gracePeriodSeconds: 0 }, signal);
    }
    return service === undefined && pods.items.length === 0 ? true : undefined;
  };
  await awaitCondition(`${app.name} to be gone`, isGone, { timeout: readyTimeout, programs: [], signal });
}
