import { type Millis, millis, seconds } from '@switchyard/core';
import type { Deployment, Node, Pod, Service } from '@switchyard/core/kubernetes';
import type { Span } from '../check-timing.ts';
import { knownChecks } from '../known-checks.ts';
import type { ExplainedCause } from '../loss-model.ts';
import { mayLose, predictRollout, type RolloutPrediction } from '../predict-rollout.ts';
import { requiredServing } from '../required-serving.ts';
import {
  type AppTiming,
  clusterProxyTiming,
  type KnownProxy,
  knownProxyTiming,
  type ProxyTiming,
  type RolloutSetting,
  servingTime,
} from '../rollout-setting.ts';
import type { NamedCheck } from './check-workload.ts';
import { type ClientPath, clientPaths } from './client-paths.ts';
import { leastPreStop, type PreStop } from './pre-stop.ts';
import { type Workload, workloadOf } from './workload.ts';

/** API objects that decide what the next rollout of a Deployment loses. */
export interface ForecastObjects {
  readonly deployment: Deployment;
  /** Those that select its pods. */
  readonly services: readonly Service[];
  readonly pods: readonly Pod[];
  readonly nodes: readonly Node[];
}

/** Behaviour of a cluster when pods end, which the objects of the workload do not show. */
export interface ForecastConditions {
  readonly proxy: KnownProxy;
  /** Longest time until every node has applied a change. Undefined: that of a small cluster. */
  readonly proxyDelay: Millis | undefined;
  /** Drain gate for hooks: it answers when the pod can be stopped, it keeps them until their time is over, or there is none. */
  readonly gate: 'answers' | 'expires' | 'absent';
  /** Time that the application accepts connections after SIGTERM. Undefined: not known. */
  readonly drain: Millis | undefined;
  /** Returns the health checks of a Service's load balancer. Called for `externalTrafficPolicy: Local` only. */
  readonly checkOf: (service: Service) => NamedCheck;
}

/** Loss of the clients of one path, as time in which all of their requests are lost: a second at half of the traffic counts as half a second. */
export interface PathForecast extends ClientPath {
  readonly workload: Workload;
  readonly best: Millis;
  /** Undefined: it depends on which nodes the clients use. */
  readonly expected: Millis | undefined;
  readonly worst: Millis;
  readonly byCause: Readonly<Partial<Record<ExplainedCause, Millis>>>;
  /** Probability, 0 to 1, that no node is UP at the load balancer for a while. */
  readonly noneUp: number;
  /** Time that a pod accepts connections after its deletion. */
  readonly serves: Span;
  /** Time that it must, so that no connection reaches an ended application where a new pod is ready first. Undefined: no time is enough. */
  readonly mustServe: Millis | undefined;
  /** Duration of the rollout; undefined: it cannot end. */
  readonly duration: Millis | undefined;
}

/** The prediction for a Deployment. */
export interface Forecast {
  /** In the order of the Services; clients inside come first. */
  readonly paths: readonly PathForecast[];
  /** Whether no path loses anything even in the worst case, and the rollout ends. */
  readonly isLossless: boolean;
}

/** Predicts what the next rollout of a Deployment loses for each path of clients. */
export function forecast(objects: ForecastObjects, conditions: ForecastConditions): Forecast {
  const paths = pathSettings(objects, conditions).map(forecastPath);
  return { paths, isLossless: paths.every(({ worst, duration }) => worst === 0 && duration !== undefined) };
}

/** Returns `forecast(...).isLossless`, sooner. */
export function isLossless(objects: ForecastObjects, conditions: ForecastConditions): boolean {
  return pathSettings(objects, conditions).every(
    ({ path, workload, late }) => workload.replicas === 0 || (!isUnguided(path) && !late.some(mayLose)),
  );
}

/** A path with the courses that a rollout may take; the first ones spread the pods evenly over the nodes. */
export interface PathSetting {
  readonly path: ClientPath;
  readonly workload: Workload;
  /** Pods are ready soon and serve for long. */
  readonly early: Courses;
  /** Pods are ready late and stop early. */
  readonly late: Courses;
  /** As `late`, in a cluster where nothing else changes. */
  readonly usual: RolloutSetting;
}

type Courses = readonly [RolloutSetting, ...RolloutSetting[]];

/** The settings of each path, for predictions. */
export function pathSettings(objects: ForecastObjects, conditions: ForecastConditions): readonly PathSetting[] {
  return objects.services.flatMap((service) => {
    const workload = workloadOf(objects.deployment, { ...objects, service });
    const isChecked = service.spec?.type === 'LoadBalancer' && service.spec.externalTrafficPolicy === 'Local';
    const check = isChecked ? conditions.checkOf(service) : undefined;
    return clientPaths(service, check).map((path) => settingOf(path, workload, conditions));
  });
}

function settingOf(path: ClientPath, workload: Workload, conditions: ForecastConditions): PathSetting {
  const { replicas, nodes, spread, strategy, minReady, gracePeriod, preStop } = workload;
  const { drain } = conditions;
  const proxy = proxyTimingOf(conditions);
  const shape = { replicas, nodes: Math.max(1, nodes), spread, strategy, minReady };
  // Without a load balancer that follows pods, checks have no effect.
  const check = path.check ?? knownChecks.switchyard;
  const base = { policy: path.check === undefined ? 'Cluster' : 'Local', check, proxy, shape } as const;
  const startup = startupSpan(workload);
  const hook = preStopSpan(preStop, { ...conditions, gracePeriod, atGate: gateWait(base, startup.longest) });
  const app = (time: 'shortest' | 'longest'): AppTiming => ({
    startup: startup[time === 'shortest' ? 'longest' : 'shortest'],
    preStop: hook[time],
    drain: drain ?? (time === 'shortest' ? millis(0) : gracePeriod),
    gracePeriod,
  });
  const courses = (time: 'shortest' | 'longest'): Courses => {
    const setting: RolloutSetting = { ...base, app: app(time) };
    return [setting, ...otherPlacements(setting)];
  };
  const [late, ...others] = courses('shortest');
  const quiet = conditions.proxyDelay === undefined ? knownProxyTiming(conditions.proxy, minReady) : proxy;
  return { path, workload, early: courses('longest'), late: [late, ...others], usual: { ...late, proxy: quiet } };
}

/**
 * The scheduler's extremes, where a load balancer follows pods and they may share nodes: all pods on one node, which stays in the load balancer; and
 * each on its own, so that every deletion takes a node out.
 */
function otherPlacements(setting: RolloutSetting): readonly RolloutSetting[] {
  const { shape, policy } = setting;
  const { replicas, nodes, spread, strategy } = shape;
  if (policy === 'Cluster' || spread === 'perNode' || nodes === 1) return [];
  const pods = replicas + (strategy.kind === 'Recreate' ? 0 : strategy.maxSurge);
  return [1, Math.max(nodes, pods)].map((count) => ({ ...setting, shape: { ...shape, nodes: count } }));
}

/** The timing of the nodes' proxies, with which bounds are computed. */
export function proxyTimingOf({ proxy, proxyDelay }: Pick<ForecastConditions, 'proxy' | 'proxyDelay'>): ProxyTiming {
  return clusterProxyTiming(proxy, proxyDelay);
}

/** The API has whole seconds, so a time to readiness is a second too short or too long. */
function startupSpan({ startup, startupFrom, readinessProbe }: Workload): Span {
  const margin = startupFrom === 'pods' ? seconds(1) : (readinessProbe?.period ?? seconds(1));
  return { shortest: millis(Math.max(0, startup - margin)), longest: millis(startup + margin) };
}

interface HookSurroundings extends ForecastConditions {
  readonly gracePeriod: Millis;
  /** Time that the gate keeps a pod. */
  readonly atGate: Millis;
}

function preStopSpan(preStop: PreStop, { gate, gracePeriod, atGate }: HookSurroundings): Span {
  const exactly = (duration: Millis): Span => ({ shortest: duration, longest: duration });
  if (preStop.kind === 'unknown') return { shortest: preStop.atLeast, longest: gracePeriod };
  if (preStop.kind !== 'gate') return exactly(leastPreStop(preStop));
  if (gate === 'absent') return exactly(millis(0));
  return gate === 'expires' || atGate > preStop.longest ? exactly(preStop.longest) : exactly(atGate);
}

/**
 * Time that the drain gate holds a pod back: until no node and no load balancer chooses it. With a replacement that is ready that is the time that
 * it must serve; without one also the replacement's start.
 */
function gateWait(setting: Omit<RolloutSetting, 'app'>, startup: Millis): Millis {
  const { strategy, minReady } = setting.shape;
  const isReplaced = strategy.kind === 'RollingUpdate' && strategy.maxUnavailable === 0;
  const served = requiredServing(setting) ?? millis(0);
  return isReplaced ? served : millis(served + startup + minReady);
}

/** Whether clients use the pods of one node only, and no load balancer leads them to a node that has some. */
function isUnguided({ policy, check }: ClientPath): boolean {
  return policy === 'Local' && check === undefined;
}

function forecastPath({ path, workload, early, late, usual }: PathSetting): PathForecast {
  const serves = { shortest: servingTime(late[0].app), longest: servingTime(early[0].app) };
  const common = { ...path, workload, serves, mustServe: requiredServing(late[0]) };
  const none = { best: millis(0), expected: millis(0), worst: millis(0), byCause: {}, noneUp: 0, duration: millis(0) };
  if (workload.replicas === 0) return { ...common, ...none };
  const predictions = late.map(predictRollout);
  const best = millis(Math.min(...[...predictions, ...early.map(predictRollout)].map((one) => one.best)));
  const duration = durationOf(predictions);
  if (isUnguided(path)) {
    // A client's node may lose its pod at once and get none any more.
    return { ...common, ...none, expected: undefined, worst: duration ?? millis(0), noneUp: 0, duration };
  }
  const evenWorst = Math.max(...predictions.map((one) => one.worst));
  const { expected: mean, byCause, noneUp } = predictRollout(usual);
  const expected = millis(Math.min(evenWorst, Math.max(best, mean)));
  const worst = millis(evenWorst * (path.isUneven ? mostEndpoints(late[0]) : 1));
  return { ...common, best: path.isUneven ? millis(0) : best, expected, worst, byCause, noneUp, duration };
}

/** By how much the loss of a client may exceed the mean: it may use one endpoint only. */
function mostEndpoints({ shape: { replicas, strategy } }: RolloutSetting): number {
  return replicas + (strategy.kind === 'Recreate' ? 0 : strategy.maxSurge);
}

function durationOf(predictions: readonly RolloutPrediction[]): Millis | undefined {
  const durations = predictions.flatMap(({ duration }) => duration ?? []);
  return durations.length < predictions.length ? undefined : millis(Math.max(...durations));
}

/** Requests, as whole numbers. */
export interface RequestInterval {
  readonly least: number;
  readonly expected: number | undefined;
  readonly most: number;
}

/**
 * Lost requests at `rate` requests a second. Which endpoint a request meets is random: the bounds are two standard deviations wider than the
 * mean numbers. 0 stays 0.
 */
export function lostRequests(
  { best, expected, worst }: Pick<PathForecast, 'best' | 'expected' | 'worst'>,
  rate: number,
): RequestInterval {
  const count = (duration: number): number => (duration * rate) / 1000;
  const [low, high] = [count(best), count(worst)];
  return {
    least: Math.max(0, Math.floor(low - 2 * Math.sqrt(low))),
    expected: expected === undefined ? undefined : Math.round(count(expected)),
    most: Math.ceil(high + 2 * Math.sqrt(high)),
  };
}
