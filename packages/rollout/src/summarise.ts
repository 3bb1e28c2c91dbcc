import { causeOfLoss, type LossCause, predictLoss, type RolloutTimes } from '@switchyard/loss';
import { type Millis, millis } from '@switchyard/core';
import { type Picked, rolloutTimes, observationSlack } from './rollout-times.ts';
import type { Loss, LossComparison, PacketLoss, RequestRecord, RunRecord, RunSummary } from './run-record.ts';

/** Asks the oracle what the old node did with a packet that arrived at a time; ordered sentences. */
export type ExplainAt = (run: RunRecord, at: Millis) => readonly string[];

/** Summarises a run: losses, their causes, and the loss that the model predicts from the observed events. */
export function summarise(run: RunRecord, explainAt: ExplainAt): RunSummary {
  const [firstMove] = run.moves;
  const { deletedAt } = firstMove;
  const times = rolloutTimes(run, firstMove, { going: 'latest', coming: 'latest' });
  const losses = lossesOf(run);
  const predicted = predictionOf(run);
  const relative = (at: number): number => (at - deletedAt) / 1000;
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
    predictedLost: Math.round((predicted.least + predicted.most) / 2),
    predicted,
    lostByCause: countCauses(losses),
    losses,
    firstLoss: first === undefined ? undefined : { ...first, explanation: explanationOf(run, first, explainAt) },
    comparison: compare(run, losses),
    keyTimes: {
      oldNodeSynced: seconds(times.oldNodeSynced),
      oldNodeUnhealthy: seconds(
        run.health.find((m) => m.node === firstMove.oldPod.node && m.at >= deletedAt && m.status !== 200)?.at,
      ),
      newUp: seconds(times.newUp),
      oldDown: seconds(times.oldDown),
      appEnded: seconds(times.appEnded),
    },
  };
}

/** Time at which the observer of slices saw that the first old pod is no longer ready. */
function notedAt(run: RunRecord): Millis | undefined {
  const [{ oldPod }] = run.moves;
  return run.endpoints.find(({ node, state, at }) => node === oldPod.node && state !== 'ready' && at >= run.startedAt)
    ?.at;
}

/** The two ends of what is not known: the least is lost when going is noticed late and coming early. */
const ends: readonly Picked[] = [
  { going: 'latest', coming: 'earliest' },
  { going: 'earliest', coming: 'latest' },
];

/** Loss that the model predicts, in requests, not rounded. */
function predictionOf(run: RunRecord): { readonly least: number; readonly most: number } {
  const lost = ends.map((picked) =>
    run.moves
      .map((move) => predictLoss(rolloutTimes(run, move, picked), run.settings.rate).lost)
      .reduce((sum, one) => sum + one, 0),
  );
  return { least: Math.min(...lost), most: Math.max(...lost) };
}

function lossesOf(run: RunRecord): readonly Loss[] {
  const widest = run.moves.map((move) => rolloutTimes(run, move, { going: 'earliest', coming: 'latest' }));
  return run.requests
    .filter((request) => request.outcome !== 'answered')
    .map((request) => {
      const cause = nearestCause(request.sentAt, widest);
      return {
        sequence: request.sequence,
        at: (request.sentAt - run.moves[0].deletedAt) / 1000,
        outcome: request.outcome,
        cause,
        seen: seenLoss(run, request, cause),
      };
    });
}

/** Codes with which an agent names what the model calls so. */
const seenCauses: Readonly<Partial<Record<LossCause, readonly string[]>>> = {
  droppedByNodeAlone: ['noLocalEndpoint', 'noEndpoints'],
  droppedByNodeShared: ['noLocalEndpoint', 'noEndpoints'],
  appGone: ['noListener', 'applicationGone'],
};

/** Time from a drop to the agent's next reading, with some patience. */
const readingSlack = millis(1000);

/** Lost packets of the same cause within the time of the request. */
function seenLoss(run: RunRecord, { sentAt, doneAt }: RequestRecord, cause: LossCause): PacketLoss | undefined {
  if (run.packetLosses?.status !== 'watched') return undefined;
  const codes = seenCauses[cause] ?? [];
  return run.packetLosses.losses.find(
    (loss) => codes.includes(loss.cause) && loss.at >= sentAt && loss.at <= doneAt + readingSlack,
  );
}

function compare({ packetLosses }: RunRecord, losses: readonly Loss[]): LossComparison | undefined {
  if (packetLosses?.status !== 'watched') return packetLosses;
  const atNodes = losses.filter(({ cause }) => seenCauses[cause] !== undefined);
  return { status: 'watched', atNodes: atNodes.length, seen: atNodes.filter(({ seen }) => seen !== undefined).length };
}

/** The model knows one move at a time: the one that has a cause without slack, or else with it. */
function nearestCause(sentAt: Millis, moves: readonly RolloutTimes[]): LossCause {
  for (const slack of [millis(0), observationSlack]) {
    const causes = moves.map((times) => causeOfLoss(sentAt, times, slack));
    const found = causes.find((cause) => cause !== 'unexplained');
    if (found !== undefined) return found;
  }
  return 'unexplained';
}

function countCauses(losses: readonly Loss[]): Readonly<Partial<Record<LossCause, number>>> {
  const counts: Partial<Record<LossCause, number>> = {};
  for (const { cause } of losses) counts[cause] = (counts[cause] ?? 0) + 1;
  return counts;
}

function explanationOf(run: RunRecord, loss: Loss, explainAt: ExplainAt): readonly string[] {
  if (loss.cause === 'noServerUp') return ['HAProxy had no server UP and closed the connection'];
  // The observer may have seen the table that made a node drop a little later than the node.
  const noted = loss.cause === 'appGone' ? undefined : notedAt(run);
  const steps = explainAt(run, millis(Math.max(run.moves[0].deletedAt + loss.at * 1000, noted ?? 0)));
  const after = loss.cause === 'appGone' ? ['by then the old app had stopped accepting connections'] : [];
  const { seen } = loss;
  const before = seen === undefined ? [] : [`the kernel of ${seen.node} dropped its packets (${seen.cause})`];
  return [...before, ...steps, ...after];
}
