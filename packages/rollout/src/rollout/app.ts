import { HostError, type IpFamily, type Millis, systemClock } from '@switchyard/core';
import { type ApiObject, type ApiResource, apiResources } from '@switchyard/core/kubernetes';
import { zeroapp, type ZeroappOptions } from '@switchyard/lab';
import type { ServiceName } from '../experiment/load-balancer.ts';
import type { Experiment } from '../experiment/experiment.ts';
import type { RolloutSite } from './rollout-site.ts';

/** A workload and its LoadBalancer Service of the same name. */
export interface App extends ServiceName {
  readonly workload: Workload;
  /** Port of the Service. */
  readonly port: number;
  /** Families of the Service, in its order. */
  readonly ipFamilies: readonly IpFamily[];
}

/** A Deployment with one replica, or a pod on every node. */
export type Workload = 'deployment' | 'daemonset';

/** Settings of an app. */
export interface AppOptions extends Pick<
  ZeroappOptions,
  'externalTrafficPolicy' | 'maxSurge' | 'maxUnavailable' | 'echoPort' | 'namespace'
> {
  readonly name: string;
  /** Default `deployment`. */
  readonly workload?: Workload;
  /** Port of the Service; different ones where load balancers share an address. */
  readonly port: number;
  /** Time that the app serves after SIGTERM, in real time, already scaled. */
  readonly delayShutdown: Millis;
  /** Time between deletion and SIGKILL, in real time. Default: 30 s scaled, or `delayShutdown` if that is longer. */
  readonly gracePeriod?: Millis;
  /** Default: the lab's first. */
  readonly ipFamilies?: readonly IpFamily[];
}

/** Creates both objects. `timeScale` is the experiment's: manifests say unscaled seconds. */
export async function deployApp(
  experiment: Experiment,
  options: AppOptions,
  timeScale: number,
  signal: AbortSignal,
): Promise<App> {
  const {
    name,
    port,
    workload = 'deployment',
    ipFamilies = experiment.lab.ipFamilies.slice(0, 1),
    gracePeriod,
  } = options;
  const unscaled = (time: Millis): number => time / 1000 / timeScale;
  const delayShutdown = unscaled(options.delayShutdown);
  const terminationGracePeriod = gracePeriod === undefined ? Math.max(30, delayShutdown) : unscaled(gracePeriod);
  const objects = zeroapp({ ...options, port: 8080, ipFamilies, delayShutdown, terminationGracePeriod });
  const { spec } = objects.service;
  const ports = spec?.ports?.map((one) => (one.name === 'http' ? { ...one, port } : one)) ?? [];
  if (workload === 'deployment') await experiment.api.create(apiResources.deployments, objects.deployment, signal);
  else await experiment.api.create(apiResources.daemonSets, objects.daemonSet, signal);
  await experiment.api.create(apiResources.services, { ...objects.service, spec: { ...spec, ports } }, signal);
  return { namespace: options.namespace ?? 'default', name, workload, port, ipFamilies };
}

/** Deletes both objects; their pods end in their own time. */
export async function removeApp(experiment: RolloutSite, app: App, signal: AbortSignal): Promise<void> {
  await experiment.api.delete(resourceOf(app), app, {}, signal);
  await experiment.api.delete(apiResources.services, app, {}, signal);
}

/** The port at which nodes answer for the health of this Service; undefined for `externalTrafficPolicy: Cluster`. */
export async function healthCheckNodePort(
  experiment: RolloutSite,
  app: App,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { spec } = await experiment.api.get(apiResources.services, app, signal);
  if (spec?.externalTrafficPolicy !== 'Local') return undefined;
  if (spec.healthCheckNodePort !== undefined) return spec.healthCheckNodePort;
  throw new HostError('rollout.service', `Service ${app.name} was given no healthCheckNodePort`);
}

/** The patch that `kubectl rollout restart` sends. */
export async function restart(experiment: RolloutSite, app: App, signal: AbortSignal): Promise<void> {
  const annotations = { 'kubectl.kubernetes.io/restartedAt': new Date(systemClock.now()).toISOString() };
  const body = { spec: { template: { metadata: { annotations } } } };
  await experiment.api.patch(resourceOf(app), app, { kind: 'strategic', body }, signal);
}

function resourceOf({ workload }: App): ApiResource<ApiObject> {
  return workload === 'deployment' ? apiResources.deployments : apiResources.daemonSets;
}
