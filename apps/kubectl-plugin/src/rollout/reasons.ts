import { millis } from '@switchyard/core';
import { takenOutAfter } from '@switchyard/loss';
import {
  durationText,
  type ForecastConditions,
  isOutage,
  type PathForecast,
  percent,
  proxyTimingOf,
} from '@switchyard/loss/workload';
import type { DetectedProxy } from './detect-proxy.ts';
import type { RolloutObjects } from './read-rollout.ts';
import type { CheckOptions } from './rollout-report.ts';

/** Inputs of a prediction. */
export interface Surroundings {
  readonly objects: RolloutObjects;
  readonly options: CheckOptions;
  readonly proxy: DetectedProxy;
  readonly conditions: ForecastConditions;
}

/** Why clients of a path lose requests, or why the rollout does not end; empty if neither is so. */
export function reasonsOf(path: PathForecast, { proxy, conditions }: Surroundings): readonly string[] {
  const { workload, check, policy, by, byCause, noneUp, serves, worst, duration } = path;
  if (workload.replicas === 0) return [];
  if (duration === undefined) {
    return [
      `the rollout cannot end: every node (${workload.nodes}) has a pod, none may have two, and none may go first; add a node, or let pods share one`,
    ];
  }
  if (worst === 0) return [];
  if (policy === 'Local' && check === undefined) {
    const field = by === 'clusterIp' ? 'internalTrafficPolicy' : 'externalTrafficPolicy';
    return [
      `${field} Local: a node whose pod moves away answers no client, and clients of that node have no other one`,
    ];
  }
  const reasons: string[] = [];
  if (isOutage(workload)) reasons.push(outageText(path));
  else if (byCause.appGone !== undefined) {
    const known = proxyTimingOf(conditions).noticesTerminating.longest;
    const until =
      check === undefined
        ? `nodes send to it for up to ${durationText(known)} (${proxy.name})`
        : `the load balancer sends to its node for up to ${durationText(millis(known + takenOutAfter(check).longest))} (${check.name})`;
    reasons.push(`a pod accepts connections for ${durationText(serves.shortest)} after its deletion, and ${until}`);
  }
  if (byCause.droppedByNodeAlone !== undefined || byCause.droppedByNodeShared !== undefined) {
    reasons.push(
      `${proxy.name} drops new connections on a node whose pods all end (no KEP-1669), while the load balancer still sends there`,
    );
  }
  if (noneUp > 0) {
    reasons.push(
      `for a while no node is UP at the load balancer, in ${percent(noneUp)} of the rollouts, however long a pod serves`,
    );
  }
  if (reasons.length === 0 && check !== undefined) {
    const needed = durationText(
      millis(proxyTimingOf(conditions).noticesTerminating.longest + takenOutAfter(check).longest),
    );
    reasons.push(
      `the scheduler may leave a node with one pod; the load balancer sends there for up to ${needed} after its deletion (${check.name}), ` +
        `and it accepts connections for ${durationText(serves.shortest)}`,
    );
  }
  return reasons.length > 0 ? reasons : ['at worst, nodes learn of the new pods later than of the end of the old ones'];
}

function outageText({ workload, worst }: PathForecast): string {
  const upTo = `for up to ${durationText(worst)} no pod answers`;
  return workload.strategy.kind === 'Recreate'
    ? `strategy Recreate stops all pods before the first new one starts: ${upTo}`
    : `maxUnavailable ${workload.strategy.maxUnavailable} lets all pods go before the first new one is ready: ${upTo}`;
}

/** Assumptions of the prediction that its user can check or replace. */
export function notesOf(paths: readonly PathForecast[], surroundings: Surroundings): readonly string[] {
  const { objects, options, proxy, conditions } = surroundings;
  const [first] = paths;
  const notes: string[] = [];
  if (proxy.isAssumed) notes.push(`${proxy.from}; taken for ${proxy.name}: --proxy names another one`);
  if (proxy.timing.startsWith('cilium'))
    notes.push('the delays of Cilium are assumed, not measured: --proxy-delay names the longest one');
  if (objects.delay !== undefined && 'why' in objects.delay) {
    notes.push(
      `how soon ${proxy.name} applies a change is that of a small, quiet cluster, because its metrics say nothing (${objects.delay.why}): --proxy-delay names the longest time`,
    );
  }
  if (options.drain === undefined && paths.some(({ worst }) => worst > 0)) {
    notes.push(
      'how long the application accepts connections after SIGTERM is not known: at worst not at all; --drain-time names it',
    );
  }
  notes.push(...hookNotes(paths, surroundings));
  if (first?.workload.readinessProbe === undefined) {
    notes.push(
      'no readinessProbe: a new pod gets requests, and an old one goes, as soon as the process runs; requests lost by that are not counted',
    );
  }
  if (!proxyTimingOf(conditions).terminatingFallback && paths.some(({ check }) => check !== undefined)) {
    notes.push(
      `${proxy.name} does not send to terminating pods (KEP-1669); with a newer one, no change of externalTrafficPolicy is needed`,
    );
  }
  const lossy = new Set(paths.filter(({ worst }) => worst > 0).map(({ service }) => service));
  for (const service of objects.services) notes.push(...serviceNotes(service, lossy.has(service.metadata.name ?? '')));
  return notes;
}

function hookNotes(paths: readonly PathForecast[], { conditions, proxy }: Surroundings): readonly string[] {
  const hook = paths[0]?.workload.preStop;
  if (hook?.kind === 'unknown') {
    const needed = Math.max(0, ...paths.flatMap(({ worst, mustServe }) => (worst > 0 ? (mustServe ?? []) : [])));
    const wanted = needed === 0 ? '' : `; ${durationText(millis(needed))} are needed`;
    return [`the preStop hook (${hook.what}) is taken to last ${durationText(hook.atLeast)} at least${wanted}`];
  }
  if (hook?.kind !== 'gate' || conditions.gate === 'answers') return [];
  return conditions.gate === 'absent'
    ? [
        'the preStop hook asks a drain gate, and kube-system has no Deployment switchyard-drain-gate: it is taken to fail at once',
      ]
    : [`the drain gate gets no answers from ${proxy.name}: the hook waits in vain, for ${durationText(hook.longest)}`];
}

function serviceNotes({ metadata, spec }: RolloutObjects['services'][number], isLossy: boolean): readonly string[] {
  const name = metadata.name ?? '';
  const annotations = metadata.annotations ?? {};
  const notes: string[] = [];
  if (spec?.clusterIP === 'None')
    notes.push(`Service ${name} is headless: its clients connect to pods, and are not predicted`);
  if (annotations['service.beta.kubernetes.io/aws-load-balancer-nlb-target-type'] === 'ip') {
    notes.push(`Service ${name}: its load balancer sends to pods (target type ip), which is not predicted`);
  }
  if (isLossy && (spec?.sessionAffinity === 'ClientIP' || spec?.trafficDistribution !== undefined)) {
    notes.push(
      `Service ${name}: clients use few of the pods each, so the upper bound is that of a client whose pod goes`,
    );
  }
  return notes;
}
