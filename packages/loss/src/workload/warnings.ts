import { type Millis, millis, seconds } from '@switchyard/core';
import type { AppTiming } from '../rollout-setting.ts';
import type { CheckOptions, ProfileRow } from './check-workload.ts';
import { durationText } from './duration-text.ts';
import type { Workload } from './workload.ts';

/** Something about a Service or a Deployment that its owner should know before a rollout. */
export interface Warning {
  /** CamelCase, for programs. */
  readonly reason: string;
  readonly message: string;
}

/** Inputs for finding warnings. */
export interface WarningInput {
  readonly workload: Workload;
  readonly options: CheckOptions;
  readonly app: AppTiming;
  readonly rows: readonly ProfileRow[];
}

/** Everything worth saying about a Deployment, what hurts most first. */
export function workloadWarnings(input: WarningInput): readonly Warning[] {
  return [
    ...rolloutWarnings(input),
    ...endWarnings(input),
    ...readinessWarnings(input),
    ...loadBalancerWarnings(input),
  ];
}

/** The shape of the rollout itself. */
function rolloutWarnings({ workload, options, rows }: WarningInput): readonly Warning[] {
  const { replicas, nodes, strategy, spread } = workload;
  const warnings: Warning[] = [];
  const say = (reason: string, message: string): number => warnings.push({ reason, message });
  if (replicas === 0) say('NoReplicas', 'replicas is 0: there is nothing to roll out, and no pod answers');
  if (nodes === 0) say('NoNodes', 'no node may run its pods and be used by load balancers; taken as 1');
  if (replicas > 0 && rows.some(({ duration }) => duration === undefined)) {
    say(
      'RolloutStuck',
      `a rollout cannot end: every node (${nodes}) has a pod, none may have two, and none may go first`,
    );
  }
  if (isOutage(workload)) {
    say(
      'Outage',
      strategy.kind === 'Recreate'
        ? 'strategy Recreate stops all pods before the first new one starts: no pod answers in between'
        : `maxUnavailable ${strategy.maxUnavailable} lets all pods go before the first new one is ready; set it to 0, maxSurge to 1`,
    );
  }
  if (replicas > nodes && spread === 'perNode' && nodes > 0) {
    say(
      'PodsPending',
      `${replicas} replicas, at most one per node, on ${nodes} nodes: ${replicas - nodes} are pending`,
    );
  }
  const isLossy = rows.some(({ worst }) => worst > 0);
  if (isLossy && options.policy === 'Local' && replicas > 1 && replicas <= nodes) {
    say(
      'LastPodOfNode',
      `${replicas} replicas on ${nodes} nodes: most nodes have one pod, and lose their place in the load balancer with it`,
    );
  }
  return warnings;
}

/** Whether all pods go before a new one is ready. */
export function isOutage({ replicas, strategy }: Workload): boolean {
  return replicas > 0 && (strategy.kind === 'Recreate' || strategy.maxUnavailable >= replicas);
}

/** How a pod ends. */
function endWarnings({ workload, options, app }: WarningInput): readonly Warning[] {
  const { preStop } = workload;
  const warnings: Warning[] = [];
  const say = (reason: string, message: string): number => warnings.push({ reason, message });
  if (preStop.kind === 'unknown' || preStop.kind === 'gate') {
    say(
      'PreStopUnknown',
      `how long does the preStop hook (${preStop.what}) last? Taken as ${durationText(app.preStop)}`,
    );
  }
  if (app.preStop + app.drain > app.gracePeriod) {
    const needed = durationText(millis(app.preStop + app.drain));
    say(
      'Killed',
      `preStop and drain last ${needed}, but terminationGracePeriodSeconds is ${app.gracePeriod / 1000}: the app is killed before`,
    );
  }
  if (options.drain === undefined) {
    say('DrainUnknown', 'the app is taken to stop accepting connections at SIGTERM; --drain-time says otherwise');
  }
  return warnings;
}

/** When a pod begins to count. */
function readinessWarnings({ workload }: WarningInput): readonly Warning[] {
  if (workload.readinessProbe !== undefined) return [];
  const message = 'no readinessProbe: a pod gets traffic, and an old one goes, as soon as its process runs';
  return [{ reason: 'NoReadinessProbe', message }];
}

/** Warnings about the load balancer's health checks. */
function loadBalancerWarnings({ workload, options, rows, app }: WarningInput): readonly Warning[] {
  const warnings: Warning[] = [];
  if (options.policy === 'Cluster') {
    warnings.push({
      reason: 'ClusterPolicy',
      message:
        'externalTrafficPolicy Cluster: health checks do not follow pods; what is lost depends on how soon the proxies notice',
    });
  }
  const needsGrace = rows.flatMap(({ mustServe }) => (mustServe === undefined ? [] : [mustServe]));
  const longest = needsGrace.length === 0 ? millis(0) : millis(Math.max(...needsGrace));
  if (longest > app.gracePeriod) {
    warnings.push({
      reason: 'GracePeriodTooShort',
      message:
        `to lose nothing behind ${slowest(rows, longest)} a pod needs terminationGracePeriodSeconds ` +
        `${wholeSeconds(longest)} at least; it is ${app.gracePeriod / 1000}`,
    });
  }
  // The warning about an outage covers these.
  const holes = isOutage(workload) ? [] : rows.filter(({ noneUp }) => noneUp > 0);
  if (holes.length > 0) {
    const each = holes.map(({ profile, noneUp, minReadyWanted }) => {
      const cure = `minReadySeconds ${wholeSeconds(minReadyWanted)} prevents it`;
      return `${profile} (in ${percent(noneUp)} of the rollouts; ${cure})`;
    });
    warnings.push({
      reason: 'NoneUp',
      message: `for a while no node is UP, however long the app serves, behind ${each.join(', ')}`,
    });
  }
  return warnings;
}

function slowest(rows: readonly ProfileRow[], longest: Millis): string {
  return rows.find(({ mustServe }) => mustServe === longest)?.profile ?? '';
}

/** Whole seconds, as Kubernetes takes them, that are long enough. */
export function wholeSeconds(duration: Millis): number {
  return Math.ceil(duration / seconds(1));
}

/** A probability above zero; never `0 %`. */
export function percent(share: number): string {
  return `${Math.max(1, Math.round(share * 100))} %`;
}
