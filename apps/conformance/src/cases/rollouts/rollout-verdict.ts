import { type LossCause } from '@switchyard/loss';
import { type Millis, millis } from '@switchyard/core';
import { type ExplainAt, type RunRecord, type RunSummary, summarise } from '@switchyard/rollout';
import type { RolloutTimeline } from '../../model/report-file.ts';

/** Verdict on the requests of one path. */
export interface PathVerdict {
  readonly run: RunRecord;
  readonly summary: RunSummary;
  /** `3 lost`. */
  readonly lost: string;
  /** Causes with their counts, and why the first one was lost. */
  readonly because: readonly string[];
  /** Undefined: the losses are where the model has them. Otherwise in words. */
  readonly beside: string | undefined;
}

/** Requests that may lie beside the prediction, as time at the load's rate: what observers of events are beside the packets. */
const slackOfPrediction = 100;

/**
 * Judges the requests of one path. Whether a foreign proxy has the terminating fallback (KEP-1669) is unknown, so its losses decide: if
 * fewer of them stay unexplained without the fallback, the proxy has none.
 */
export function judge(run: RunRecord, explainAt: ExplainAt, releasedAt: ReleasedAt): PathVerdict {
  const whileServed = requestsWhileServed(run, releasedAt);
  const as = (terminatingFallback: boolean): { run: RunRecord; summary: RunSummary } => {
    const one = { ...whileServed, settings: { ...run.settings, terminatingFallback } };
    return { run: one, summary: summarise(one, explainAt) };
  };
  const [withIt, without] = [as(true), as(false)];
  const unexplained = (one: { summary: RunSummary }): number => one.summary.lostByCause.unexplained ?? 0;
  const chosen = unexplained(without) < unexplained(withIt) ? without : withIt;
  const { lost, lostByCause, firstLoss } = chosen.summary;
  const causes = Object.entries(lostByCause).map(([cause, count]) => `${count} ${causeWords[cause as LossCause]}`);
  const first =
    firstLoss === undefined
      ? []
      : [
          `the first one, ${firstLoss.outcome}, ${firstLoss.at.toFixed(2)} s after the pod's deletion:`,
          ...firstLoss.explanation,
        ];
  return {
    ...chosen,
    lost: `${lost} lost`,
    because: [...causes, ...first],
    beside: besidePrediction(chosen.summary, run),
  };
}

const causeWords: Readonly<Record<LossCause, string>> = {
  droppedByNodeAlone: 'dropped by a node that did not use its terminating endpoint, while no other node was in use',
  droppedByNodeShared:
    'dropped by a node that did not use its terminating endpoint, while others had a part of the requests',
  appGone: 'sent to an application that had ended',
  noServerUp: 'closed by the load balancer, which held no node UP',
  unexplained: 'that no event explains',
};

function besidePrediction({ lost, predicted, lostByCause }: RunSummary, { settings }: RunRecord): string | undefined {
  const { least, most } = predicted;
  const slack = most === 0 ? 0 : (settings.rate * slackOfPrediction) / 1000;
  const isInside = lost >= Math.floor(least - slack) && lost <= Math.ceil(most + slack);
  const unexplained = lostByCause.unexplained ?? 0;
  if (isInside && unexplained === 0) return undefined;
  const range = `${Math.floor(least)} to ${Math.ceil(most)}`;
  return `${lost} lost, ${range} predicted${unexplained === 0 ? '' : `, ${unexplained} unexplained`}`;
}

/** Time at which each old pod was released, by pod name; it served until then. */
export type ReleasedAt = ReadonlyMap<string, Millis>;

/** On a busy machine a pod may not answer requests that arrive this shortly before its end, in milliseconds. */
const beforeEnd = 400;

/**
 * Removes requests sent straight to a node that may only use its own endpoints, after the last of these was released: dropping them is right.
 */
function requestsWhileServed(run: RunRecord, releasedAt: ReleasedAt): RunRecord {
  const { path, moves } = run;
  if (path.kind !== 'node' || path.endpoints === 'all') return run;
  const last = moves.find(({ oldPod }) => oldPod.node === path.node);
  const released = releasedAt.get(last?.oldPod.name ?? '');
  if (released === undefined) return run;
  const end = millis(released - beforeEnd);
  return {
    ...run,
    endedAt: end,
    requests: run.requests.filter(({ scheduledAt }) => scheduledAt < end),
    pods: run.pods.filter(({ at }) => at < end),
    endpoints: run.endpoints.filter(({ at }) => at < end),
  };
}

/** The picture and the figures, for reports. */
export function timelineOf({ run, summary }: PathVerdict, svg: string): RolloutTimeline {
  const since = (at: Millis): number => Math.round(at - run.startedAt);
  const events = [
    ...run.pods.map(({ at, pod, node, phase }) => ({ at, lane: 'pods', text: `${pod} on ${node}: ${phase}` })),
    ...run.endpoints.map(({ at, node, state }) => ({ at, lane: 'slices', text: `${node}: ${state}` })),
    ...(run.syncs ?? []).map(({ at, node }) => ({ at, lane: 'syncs', text: `${node} applied` })),
    ...run.health.map(({ at, node, status }) => ({ at, lane: 'health', text: `${node}: ${status || 'no answer'}` })),
    ...run.loadBalancer.map(({ at, node, isUp, reason }) => ({
      at,
      lane: 'load balancer',
      text: `${node} ${isUp ? 'UP' : 'DOWN'}: ${reason}`,
    })),
  ];
  return {
    title: run.path.name,
    requests: summary.requests,
    lost: summary.lost,
    predictedLost: { least: Math.floor(summary.predicted.least), most: Math.ceil(summary.predicted.most) },
    lostByCause: summary.lostByCause,
    outcomes: run.requests.map(({ scheduledAt, outcome }) => [since(scheduledAt), outcome] as const),
    events: events.map((event) => ({ ...event, at: since(event.at) })).sort((a, b) => a.at - b.at),
    svg,
  };
}
