import { type Millis, millis, systemClock } from '@switchyard/core';
import type { ProbeConnection, ProbeExchange } from '@switchyard/lab';
import type { LossCause } from '@switchyard/loss';
import { type ExplainAt, type RunRecord, type RunSummary, summarise } from '@switchyard/rollout';
import { echoPatience, loadEvidence, unreadyApplication } from '../../engine/evidence.ts';
import type { RolloutTimeline } from '../../model/report-file.ts';
import type { HoldTarget } from '../../model/rollout.ts';

export interface PathVerdict {
  /** With the requests that count. */
  readonly run: RunRecord;
  /** Why the run proves nothing; undefined: it does. */
  readonly doubt: string | undefined;
  readonly summary: RunSummary;
  /** `3 lost`. */
  readonly lost: string;
  /** Causes with their counts, and why the first one was lost. */
  readonly because: readonly string[];
  /** Undefined: the losses are where the model has them. Otherwise in words. */
  readonly beside: string | undefined;
}

/** Context of a run: that of its rollout. */
interface Surroundings {
  readonly explainAt: ExplainAt;
  readonly releasedAt: ReleasedAt;
  /** The requests of all paths. */
  readonly beside: RunRecord['requests'];
}

/** Requests that may lie beside the prediction, as time at the load's rate: what observers of events are beside the packets. */
const slackOfPrediction = 100;

/**
 * Judges the requests of one path. Whether a foreign proxy has the terminating fallback (KEP-1669) is unknown, so its losses decide: if
 * fewer of them stay unexplained without the fallback, the proxy has none.
 */
export function judge(run: RunRecord, { explainAt, releasedAt, beside }: Surroundings): PathVerdict {
  const whileServed = requestsWhileServed(run, releasedAt);
  const { counting: requests, doubt: doubtIfNoneLost } = loadEvidence(whileServed.requests, beside);
  const as = (terminatingFallback: boolean): { run: RunRecord; summary: RunSummary } => {
    const one = { ...whileServed, requests, settings: { ...run.settings, terminatingFallback } };
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
    doubt: doubtOf(run) ?? (lost === 0 ? doubtIfNoneLost : undefined),
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

/** A pod that becomes ready a second time was not ready in between. */
function doubtOf({ pods }: RunRecord): string | undefined {
  const ready = pods.filter(({ phase }) => phase === 'ready').map(({ pod }) => pod);
  const again = ready.find((pod, index) => ready.indexOf(pod) < index);
  return again === undefined ? undefined : unreadyApplication(again);
}

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

/** Removes requests sent straight to a node that may only use its own endpoints, after the last of these was released: dropping them is right. */
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

export interface HeldConnection {
  readonly path: string;
  /** The pod that answered; undefined: it could not be opened. */
  readonly pod: string | undefined;
  /** The first exchange that failed; undefined: none did. */
  readonly failure:
    | {
        readonly askedAt: Millis;
        readonly noticedAt: Millis;
        readonly status: Exclude<ProbeExchange['status'], 'echoed'>;
      }
    | undefined;
  readonly echoed: number;
}

/** Connections that are open. Disposing closes them without a result. */
export interface HeldConnections extends AsyncDisposable {
  /** Ends all exchanges and returns the result of each connection. */
  finish(): Promise<readonly HeldConnection[]>;
}

/** Opens `count` connections by each path and sends a line on each every `lineInterval` milliseconds. */
export async function holdConnections(
  targets: readonly HoldTarget[],
  { count, lineInterval }: { readonly count: number; readonly lineInterval: number },
  signal: AbortSignal,
): Promise<HeldConnections> {
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const opened = await Promise.all(
    targets.map(async ({ path, from, address, port }) => {
      const prober = stack.use(await from.openProber(signal));
      const open = async (): Promise<Opened> => {
        const { result, connection } = await prober.open({ protocol: 'tcp', address, port });
        return { path, connection, pod: result.status === 'answered' ? result.by : undefined };
      };
      return Promise.all(Array.from({ length: count }, open));
    }),
  );
  const running = opened.flat().map((one) => exchangeLines(one, lineInterval, stop.signal));
  const owned = stack.move();
  const all = Promise.all(running);
  all.catch(() => undefined); // of a prober that has ended; `finish` rejects with it
  return {
    finish: () => {
      stop.abort();
      return all;
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await owned.disposeAsync();
      await all.catch(() => undefined);
    },
  };
}

interface Opened {
  readonly path: string;
  readonly pod: string | undefined;
  readonly connection: ProbeConnection | undefined;
}

async function exchangeLines(
  { path, pod, connection }: Opened,
  interval: number,
  signal: AbortSignal,
): Promise<HeldConnection> {
  let echoed = 0;
  if (connection === undefined) return { path, pod, echoed, failure: undefined };
  while (!signal.aborted) {
    const askedAt = systemClock.now();
    const { status } = await connection.exchange(`line ${echoed}`, echoPatience);
    if (status !== 'echoed') return { path, pod, echoed, failure: { askedAt, noticedAt: systemClock.now(), status } };
    echoed += 1;
    await systemClock.sleep(millis(interval), signal).catch(() => undefined);
  }
  return { path, pod, echoed, failure: undefined };
}

/** Milliseconds. A pod ends a moment after its release was recorded; on a busy machine it may not answer its last lines. */
const slack = 300;

/**
 * Returns `held` for a connection that lasted until its deleted pod stopped serving at `servedUntil`, or else how it broke. A line
 * without an answer counts by the time it was sent, a break by the time it was noticed.
 */
export function holdVerdict({ pod, failure, echoed }: HeldConnection, servedUntil: Millis | undefined): string {
  if (pod === undefined) return 'could not be opened';
  if (failure === undefined) return echoed > 0 ? 'held' : 'never used';
  const at = failure.status === 'timeout' ? failure.askedAt : failure.noticedAt;
  if (servedUntil !== undefined && at >= servedUntil - slack) return 'held';
  const when =
    servedUntil === undefined ? 'though its pod stayed' : `${inSeconds(servedUntil - at)} before its pod's end`;
  return `${failure.status} ${when}`;
}

function inSeconds(time: number): string {
  return `${(time / 1000).toFixed(2)} s`;
}
