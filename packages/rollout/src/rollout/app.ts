import { HostError, type Millis, systemClock } from '@switchyard/core';
import { apiResources, zeroapp } from '@switchyard/lab';
import type { ServiceName } from '../stage/load-balancer.ts';
import type { Stage } from '../stage/stage.ts';

/** A Deployment with one replica, and its LoadBalancer Service of the same name. */
export interface App extends ServiceName {
  /** Of the Service. */
  readonly port: number;
}

/** What to deploy. */
export interface AppOptions {
  readonly name: string;
  /** Port of the Service; different ones where load balancers share an address. */
  readonly port: number;
  /** How long the app goes on serving after SIGTERM, in real time, already scaled. */
  readonly delayShutdown: Millis;
}

/** Creates both objects. `timeScale` is the stage's: manifests say unscaled seconds. */
export async function deployApp(
  stage: Stage,
  options: AppOptions,
  timeScale: number,
  signal: AbortSignal,
): Promise<App> {
  const { name, port } = options;
  const delayShutdown = options.delayShutdown / 1000 / timeScale;
  const objects = zeroapp({ name, delayShutdown, terminationGracePeriod: Math.max(30, delayShutdown) });
  const { spec } = objects.service;
  const service = { ...objects.service, spec: { ...spec, ports: spec?.ports?.map((one) => ({ ...one, port })) ?? [] } };
  await stage.api.create(apiResources.deployments, objects.deployment, signal);
  await stage.api.create(apiResources.services, service, signal);
  return { namespace: 'default', name, port };
}

/** The port at which nodes answer for the health of this Service. */
export async function healthCheckNodePort(stage: Stage, app: App, signal: AbortSignal): Promise<number> {
  const found = await stage.api.get(apiResources.services, app, signal);
  const port = found.spec?.healthCheckNodePort;
  if (port === undefined) {
    throw new HostError('rollout.service', `Service ${app.name} was given no healthCheckNodePort`);
  }
  return port;
}

/** The patch that `kubectl rollout restart` sends. */
export async function restart(stage: Stage, app: App, signal: AbortSignal): Promise<void> {
  const annotations = { 'kubectl.kubernetes.io/restartedAt': new Date(systemClock.now()).toISOString() };
  const body = { spec: { template: { metadata: { annotations } } } };
  await stage.api.patch(apiResources.deployments, app, { kind: 'strategic', body }, signal);
}
