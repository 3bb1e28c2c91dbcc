import { HostError, type IpFamily, millis, type Millis } from '@switchyard/core';
import type { LoadPath, PodPlace } from '../run-record.ts';
import { awaitCondition, type WaitOptions } from '../experiment/experiment.ts';
import type { App } from './app.ts';
import { servingPods } from './pod-moments.ts';
import { programsOf, type RolloutSetup } from './rollout-setup.ts';
import type { RequestSender } from './rollout-site.ts';

/** A path and how to send by it. */
export interface LoadTarget {
  readonly path: LoadPath;
  readonly from: RequestSender;
  readonly address: string;
  readonly port: number;
}

/** An app that answers, and nothing changes any more. */
export interface SettledApp extends App {
  /** The pods that answer. */
  readonly pods: readonly PodPlace[];
}

const settleTimeout: Millis = millis(60_000);

/** The path through the load balancer, from the client outside; waits for its address. */
export async function loadBalancerTarget(
  setup: RolloutSetup,
  app: App,
  ipFamily: IpFamily,
  signal: AbortSignal,
): Promise<LoadTarget> {
  const { loadBalancer, experiment } = setup;
  if (loadBalancer === undefined) throw new HostError('rollout.path', `no load balancer serves ${app.name}`);
  const address = await loadBalancer.addressOf({ ...app, ipFamily }, signal);
  const path = { kind: 'loadBalancer', name: 'load balancer', ipFamily } as const;
  return { path, from: experiment.outside, address, port: app.port };
}

/** Waits until the app answers by each path, and the load balancer uses the nodes that have a pod and no others. */
export async function awaitSettled(
  setup: RolloutSetup,
  work: { readonly app: App; readonly targets: readonly LoadTarget[]; readonly settleTimeout?: Millis },
  signal: AbortSignal,
): Promise<SettledApp> {
  const { app, targets } = work;
  const options = { timeout: work.settleTimeout ?? settleTimeout, programs: programsOf(setup), signal };
  await Promise.all(
    targets.map((target) => awaitAnswer(target, { ...options, what: `the first answer by ${target.path.name}` })),
  );
  await awaitPlaced(setup, app, { ...options, what: 'HAProxy to find out which node has no pod' });
  return { ...app, pods: servingPods(setup.experiment.workloadEvents, app.name) };
}

/** Waits until a target answers. `what` as for `awaitCondition`. */
export async function awaitAnswer(
  { from, address, port }: LoadTarget,
  options: WaitOptions & { readonly what: string },
): Promise<void> {
  await using prober = await from.openProber(options.signal);
  await awaitCondition(
    options.what,
    async () => {
      const result = await prober.probe({ protocol: 'http', address, port, timeout: 500 });
      return result.status === 'answered' ? true : undefined;
    },
    options,
  );
}

/** Waits until the load balancer holds the nodes with a serving pod UP, as far as it has checked them, and all others DOWN. */
export async function awaitPlaced(
  { experiment, loadBalancer }: RolloutSetup,
  app: App,
  options: WaitOptions & { readonly what: string },
): Promise<void> {
  if (loadBalancer === undefined) return;
  await awaitCondition(
    options.what,
    async () => {
      const hosts = new Set(servingPods(experiment.workloadEvents, app.name).map(({ node }) => node));
      return app.ipFamilies.every((ipFamily) => {
        const health = loadBalancer.healthOf({ ...app, ipFamily });
        return experiment.nodes.every(({ name }) =>
          hosts.has(name) ? health.get(name) !== false : health.get(name) === false,
        );
      }) && hosts.size > 0
        ? true
        : undefined;
    },
    options,
  );
}
