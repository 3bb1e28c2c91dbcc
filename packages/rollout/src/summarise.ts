import { causeOfLoss, type LossCause, type Millis, millis, predictLoss, type RolloutTimes } from '@switchyard/core';
import type { RunRecord } from './run-record.ts';
import type { Loss, RunSummary } from './run-summary.ts';

/** Asks the oracle what the old node did with a packet that arrived at a time; ordered sentences. */
export type ExplainAt = (run: RunRecord, at: Millis) => readonly string[];

/** How far the observers of events (logs, watches) may lie beside the packets: two requests at 20/s. */
const observationSlack = millis(100);

/** What a run comes down to: losses, their causes, and what the model says the observed events cost. */
export function summarise(run: RunRecord, explainAt: ExplainAt): RunSummary {
  const times = rolloutTimes(run);
  const losses = lossesOf(run, times);
  const relative = (at: number): number => (at - run.deletedAt) / 1000;
  const first = losses[0];
  const last = losses.at(-1);
  const lossWindow = first === undefined || last === undefined ? undefined : { from: first.at, to: last.at };
  const seconds = (at: Millis | undefined): number | undefined => (at === undefined ? undefined : relative(at));
  return {
    terminatingFallback: run.settings.terminatingFallback,
    requests: run.requests.length,
    answered: run.requests.length - losses.length,
    lost: losses.length,
    lossWindow,
    lossWindowSeconds: lossWindow === undefined ? 0 : lossWindow.to - lossWindow.from,
    predictedLost: Math.round(predictLoss(times, run.settings.rate).lost),
    lostByCause: countCauses(losses),
    losses,
    firstLoss: first === undefined ? undefined : { ...first, explanation: explanationOf(run, first, explainAt) },
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
  const knewAt = notedAt(run);
  const newUp = run.loadBalancer.find(
    (moment) => moment.node === run.newPod.node && moment.isUp && moment.at >= run.startedAt,
  )?.at;
  const oldDown = run.loadBalancer.find(
    (moment) => moment.node === oldNode && !moment.isUp && moment.at >= run.deletedAt,
  )?.at;
  return {
    terminatingFallback: run.settings.terminatingFallback,
    oldNodeSynced: knewAt === undefined ? undefined : syncOf(run, oldNode, knewAt),
    appEnded: run.pods.find((moment) => moment.pod === run.oldPod.name && moment.phase === 'ended')?.at,
    ...usedFromTo(run, { newUp, oldDown, knewAt }),
    until: run.endedAt,
  };
}

interface Seen {
  readonly newUp: Millis | undefined;
  readonly oldDown: Millis | undefined;
  readonly knewAt: Millis | undefined;
}

/**
 * From when on the load balancer used the new node, and until when the old one. One that uses all nodes while none is UP does both at
 * once between the old node's end and the new one's coming.
 */
function usedFromTo(run: RunRecord, seen: Seen): Pick<RolloutTimes, 'newUp' | 'oldDown'> {
  const { newUp } = seen;
  const oldDown = leftAt(run, seen);
  const isOpen = run.settings.healthCheck.whenNoneUp === 'all';
  if (!isOpen || oldDown === undefined || (newUp !== undefined && newUp <= oldDown)) return { newUp, oldDown };
  return { newUp: oldDown, oldDown: newUp };
}

/**
 * When the load balancer stopped using the old node. With fast drain that is when EndpointSlices say that its pod terminates, but not before
 * the new node is UP. Where nodes that were UP stand in for nobody, it went on using the old one until then too.
 */
function leftAt({ settings }: RunRecord, { newUp, oldDown, knewAt }: Seen): Millis | undefined {
  const { whenNoneUp, lastUpFor } = settings.healthCheck;
  const drained = settings.fastDrain && knewAt !== undefined ? Math.max(knewAt, newUp ?? Infinity) : Infinity;
  const left = Math.min(drained, oldDown ?? Infinity);
  if (left === Infinity) return undefined;
  const stoodInUntil = whenNoneUp === 'lastUp' ? Math.min(left + lastUpFor, newUp ?? Infinity) : left;
  return millis(Math.max(left, stoodInUntil));
}

/** When the observer of slices noted that the old pod is no longer ready. */
function notedAt(run: RunRecord): Millis | undefined {
  return run.endpoints.find(
    ({ node, state, at }) => node === run.oldPod.node && state !== 'ready' && at >= run.startedAt,
  )?.at;
}

/**
 * The first apply that can have had the old pod as terminating. The agent may be some milliseconds faster than the
 * observer who noted the slice, but not than the deletion; its log has whole milliseconds.
 */
function syncOf(run: RunRecord, node: string, knewAt: Millis): Millis | undefined {
  const earliest = Math.max(Math.floor(run.deletedAt), knewAt - observationSlack);
  return run.syncs.find((sync) => sync.node === node && sync.at >= earliest)?.at;
}

function lossesOf(run: RunRecord, times: RolloutTimes): readonly Loss[] {
  return run.requests
    .filter((request) => request.outcome !== 'answered')
    .map((request) => ({
      sequence: request.sequence,
      at: (request.sentAt - run.deletedAt) / 1000,
      outcome: request.outcome,
      cause: causeOfLoss(request.sentAt, times, observationSlack),
    }));
}

function countCauses(losses: readonly Loss[]): Readonly<Partial<Record<LossCause, number>>> {
  const counts: Partial<Record<LossCause, number>> = {};
  for (const { cause } of losses) counts[cause] = (counts[cause] ?? 0) + 1;
  return counts;
}

function explanationOf(run: RunRecord, loss: Loss, explainAt: ExplainAt): readonly string[] {
  if (loss.cause === 'noServerUp') return ['HAProxy had no server UP and closed the connection'];
  // What a node dropped it dropped by a table that the observer may have noted a little later.
  const noted = loss.cause === 'appGone' ? undefined : notedAt(run);
  const steps = explainAt(run, millis(Math.max(run.deletedAt + loss.at * 1000, noted ?? 0)));
  return loss.cause === 'appGone' ? [...steps, 'by then the old app had stopped accepting connections'] : steps;
}
