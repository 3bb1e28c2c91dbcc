import { type Millis, millis } from '@switchyard/core';
import { type CheckTiming, type Span, takenInAfter, takenOutAfter } from '../check-timing.ts';
import type { ExplainedCause } from '../loss-model.ts';
import { predictRollout } from '../predict-rollout.ts';
import { requiredServing } from '../required-serving.ts';
import {
  type AppTiming,
  fastDrainTiming,
  type KnownProxy,
  knownProxyTiming,
  type ProxyTiming,
  type RolloutSetting,
  servingTime,
} from '../rollout-setting.ts';
import { leastPreStop } from './pre-stop.ts';
import { type Warning, workloadWarnings } from './warnings.ts';
import type { Workload } from './workload.ts';

/** Health checks of a load balancer, with their name for people. */
export interface NamedCheck extends CheckTiming {
  readonly name: string;
}

/** Inputs of a prediction besides the Deployment. */
export interface CheckOptions {
  readonly policy: 'Cluster' | 'Local';
  readonly profiles: readonly NamedCheck[];
  /** Time that the app accepts connections after SIGTERM; undefined when not given: then it is assumed to stop at once. */
  readonly drain: Millis | undefined;
  readonly proxy: KnownProxy;
  readonly isFastDrain: boolean;
}

/** Predicted loss of a rollout behind one profile. */
export interface ProfileRow {
  readonly profile: string;
  /** From a node's first failing answer until the load balancer has left it. Undefined: health checks do not follow pods. */
  readonly noticesAfter: Span | undefined;
  /** Time that the app must serve after its pod's deletion to lose nothing; undefined: no time is enough. */
  readonly mustServe: Millis | undefined;
  /** Time at full traffic; so are `best` and `worst`. */
  readonly expected: Millis;
  readonly best: Millis;
  readonly worst: Millis;
  readonly byCause: Readonly<Partial<Record<ExplainedCause, Millis>>>;
  /** Duration of the rollout; undefined: it cannot end. */
  readonly duration: Millis | undefined;
  /** Probability, 0 to 1, that no node is UP for a while and the load balancer closes connections. */
  readonly noneUp: number;
  /** With a `minReadySeconds` of this, that cannot be, if a new pod comes before an old one goes. */
  readonly minReadyWanted: Millis;
}

/** The prediction for one Deployment. */
export interface WorkloadReport {
  readonly workload: Workload;
  readonly proxy: ProxyTiming;
  /** Time that a pod accepts connections after its deletion. */
  readonly serves: Millis;
  readonly rows: readonly ProfileRow[];
  readonly warnings: readonly Warning[];
}

/** Predicts what rollouts of a Deployment cost. Pure. */
export function checkWorkload(workload: Workload, options: CheckOptions): WorkloadReport {
  const { minReady, preStop, gracePeriod, startup } = workload;
  const app: AppTiming = {
    startup,
    preStop: leastPreStop(preStop),
    drain: options.drain ?? millis(0),
    gracePeriod,
  };
  const proxy = knownProxyTiming(options.proxy, minReady);
  const { replicas, nodes, spread, strategy } = workload;
  const shape = { replicas, nodes: Math.max(1, nodes), spread, strategy, minReady };
  const fastDrain = options.isFastDrain ? { fastDrain: fastDrainTiming } : {};
  const rows = options.profiles.map((check) =>
    rowOf(check.name, { policy: options.policy, check, proxy, app, shape, ...fastDrain }),
  );
  const warnings = workloadWarnings({ workload, options, app, rows });
  return { workload, proxy, serves: servingTime(app), rows, warnings };
}

function rowOf(profile: string, setting: RolloutSetting): ProfileRow {
  const { policy, check, proxy } = setting;
  const { expected, best, worst, byCause, duration, noneUp } = predictRollout(setting);
  return {
    profile,
    noticesAfter: policy === 'Local' ? takenOutAfter(check) : undefined,
    mustServe: requiredServing(setting),
    expected,
    best,
    worst,
    byCause,
    duration,
    noneUp,
    minReadyWanted: millis(
      Math.max(0, proxy.noticesReady.longest + takenInAfter(check).longest - takenOutAfter(check).shortest),
    ),
  };
}
