import { causeOfLoss, type LossCause, type Millis, millis, predictLoss, type RolloutTimes } from '@switchyard/core';
import type { RequestRecord, RunRecord } from './run-record.ts';
import type { FirstLoss, RunSummary } from './run-summary.ts';

/** Asks the oracle what the old node did with a packet that arrived at a time; ordered sentences. */
export type ExplainAt = (run: RunRecord, at: Millis) => readonly string[];

/** How far the observers of events (logs, watches) may lie beside the packets: two requests at 20/s. */
const observationSlack = millis(100);

/** What a run comes down to: losses, their causes, and what the model says the observed events cost. */
export function summarise(run: RunRecord, explainAt: ExplainAt): RunSummary {
  const times = rolloutTimes(run);
  const lost = run.requests.filter((request) => request.outcome !== 'answered');
  const relative = (at: number): number => (at - run.deletedAt) / 1000;
  const first = lost[0];
  const last = lost.at(-1);
  const lossWindow =
    first === undefined || last === undefined ? undefined : { from: relative(first.sentAt), to: relative(last.sentAt) };
  const seconds = (at: Millis | undefined): number | undefined => (at === undefined ? undefined : relative(at));
  return {
    terminatingFallback: run.settings.terminatingFallback,
    requests: run.requests.length,
    answered: run.requests.length - lost.length,
    lost: lost.length,
    lossWindow,
    lossWindowSeconds: lossWindow === undefined ? 0 : lossWindow.to - lossWindow.from,
    predictedLost: Math.round(predictLoss(times, run.settings.rate).lost),
    lostByCause: countCauses(lost, times),
    firstLoss: first === undefined ? undefined : firstLossOf(run, first, explainAt),
    keyTimes: {
      oldNodeSynced: seconds(times.oldNodeSynced),
      oldNodeUnhealthy: seconds(
        run.health.find((m) => m.node === run.oldPod.node && m.at >= run.deletedAt && m.status !== 200)?.at,
      ),
      newUp: seconds(times.newUp),
      oldDown: seconds(times.oldDown),
      appEnded: seconds(times.appEnded),
    },
  };
}

/** The model's input, picked from everything that was observed. */
export function rolloutTimes(run: RunRecord): RolloutTimes {
  const oldNode = run.oldPod.node;
  const knewAt = run.endpoints.find(
    (moment) => moment.node === oldNode && moment.state !== 'ready' && moment.at >= run.startedAt,
  )?.at;
  return {
    terminatingFallback: run.settings.terminatingFallback,
    oldNodeSynced:
      knewAt === undefined ? undefined : run.syncs.find((sync) => sync.node === oldNode && sync.at >= knewAt)?.at,
    appEnded: run.pods.find((moment) => moment.pod === run.oldPod.name && moment.phase === 'ended')?.at,
    newUp: run.loadBalancer.find(
      (moment) => moment.node === run.newPod.node && moment.isUp && moment.at >= run.startedAt,
    )?.at,
    oldDown: run.loadBalancer.find((moment) => moment.node === oldNode && !moment.isUp && moment.at >= run.deletedAt)
      ?.at,
    until: run.endedAt,
  };
}

function countCauses(
  lost: readonly RequestRecord[],
  times: RolloutTimes,
): Readonly<Partial<Record<LossCause, number>>> {
  const counts: Partial<Record<LossCause, number>> = {};
  for (const request of lost) {
    const cause = causeOfLoss(request.sentAt, times, observationSlack);
    counts[cause] = (counts[cause] ?? 0) + 1;
  }
  return counts;
}

function firstLossOf(run: RunRecord, request: RequestRecord, explainAt: ExplainAt): FirstLoss {
  const cause = causeOfLoss(request.sentAt, rolloutTimes(run), observationSlack);
  return {
    sequence: request.sequence,
    at: (request.sentAt - run.deletedAt) / 1000,
    outcome: request.outcome,
    cause,
    explanation:
      cause === 'noServerUp' ? ['HAProxy had no server UP and closed the connection'] : explainAt(run, request.sentAt),
  };
}
