import { type Millis, millis } from '@switchyard/core';
import { type RolloutTimes, knownProxyTiming } from '@switchyard/loss';
import { isDeepStrictEqual } from 'node:util';
import type { EndpointMoment, Move, RunRecord } from './run-record.ts';

/** Choice between the bounds of unknown times: for the removal of the old endpoint, and for the use of the new one. */
export interface Picked {
  readonly going: keyof Bounds;
  readonly coming: keyof Bounds;
}

/** The model's input for one move, picked from everything that was observed. What was observed exactly has no ends to pick. */
export function rolloutTimes(run: RunRecord, move: Move, picked: Picked): RolloutTimes {
  return run.path.kind === 'node' && run.path.endpoints === 'all'
    ? timesOfAll(run, move, picked)
    : timesOfOwn(run, move, picked);
}

/** Times for a path whose node only uses its own endpoints: through a load balancer, or straight to the old node. */
function timesOfOwn(run: RunRecord, move: Move, picked: Picked): RolloutTimes {
  const { path } = run;
  const oldNode = path.kind === 'node' ? path.node : move.oldPod.node;
  const common = { terminatingFallback: run.settings.terminatingFallback, until: run.endedAt };
  const never = { oldNodeSynced: undefined, appEnded: undefined, newUp: run.startedAt, oldDown: run.startedAt };
  if (oldNode !== move.oldPod.node) return { ...common, ...never };
  const own = run.endpoints.filter(({ node }) => node === oldNode);
  const syncedAt = own.find(({ state, at }) => state !== 'ready' && at >= since(run, move))?.at;
  // A successor on the same node was ready before: the node never lacked a ready endpoint.
  if (syncedAt === undefined && move.newPod.node === oldNode) return { ...common, ...never };
  const backAt =
    syncedAt === undefined ? undefined : own.find(({ state, at }) => state === 'ready' && at > syncedAt)?.at;
  const back = backAt === undefined ? undefined : appliedAt(run, oldNode, backAt, move)?.[picked.coming];
  return {
    ...common,
    oldNodeSynced: syncedAt === undefined ? undefined : appliedAt(run, oldNode, syncedAt, move)?.[picked.going],
    appEnded: endOf(run, move),
    ...(path.kind === 'node' ? { newUp: back, oldDown: back } : usedFromTo(run, { move, syncedAt, back })),
  };
}

/** Times for a path whose node may use every endpoint: whether any is ready, and when this node knew. */
function timesOfAll(run: RunRecord, move: Move, picked: Picked): RolloutTimes {
  const node = run.path.kind === 'node' ? run.path.node : '';
  const common = { until: run.endedAt, appEnded: endOf(run, move) };
  const changes = anyReady(run);
  const goneAt = changes.find(({ isReady, at }) => !isReady && at >= since(run, move))?.at;
  const isOurs = goneAt !== undefined && goneAt <= (common.appEnded ?? run.endedAt);
  if (!isOurs) {
    // Others are ready: the old endpoint is lost only from its end until the node knows that it is going.
    const left = run.endpoints.find(
      (moment) => moment.node === move.oldPod.node && moment.state !== 'ready' && moment.at >= since(run, move),
    )?.at;
    const synced = left === undefined ? undefined : appliedAt(run, node, left, move)?.[opposite(picked.going)];
    return {
      ...common,
      terminatingFallback: true,
      oldNodeSynced: synced,
      newUp: run.startedAt,
      oldDown: synced ?? run.startedAt,
    };
  }
  const freshAt = changes.find(({ isReady, at }) => isReady && at > goneAt)?.at;
  const fresh = freshAt === undefined ? undefined : appliedAt(run, node, freshAt, move)?.[picked.coming];
  const synced = appliedAt(run, node, goneAt, move)?.[picked.going];
  const { terminatingFallback } = run.settings;
  return { ...common, terminatingFallback, oldNodeSynced: synced, newUp: fresh, oldDown: fresh };
}

function opposite(end: keyof Bounds): keyof Bounds {
  return end === 'earliest' ? 'latest' : 'earliest';
}

/** Time from which a change of endpoints can belong to this move. Observers may see the first move before its deletion. */
function since(run: RunRecord, move: Move): Millis {
  return move === run.moves[0] ? run.startedAt : millis(move.deletedAt - 100);
}

function endOf(run: RunRecord, { oldPod }: Move): Millis | undefined {
  return run.pods.find((moment) => moment.pod === oldPod.name && moment.phase === 'ended')?.at;
}

/** Whether any endpoint was ready, whenever that changed. */
function anyReady(run: RunRecord): readonly { readonly at: Millis; readonly isReady: boolean }[] {
  const states = new Map<string, EndpointMoment['state']>();
  return run.endpoints
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, node, state }) => {
      states.set(node, state);
      return { at, isReady: [...states.values()].includes('ready') };
    });
}

interface Seen {
  readonly move: Move;
  readonly syncedAt: Millis | undefined;
  /** The old node has a ready endpoint again. */
  readonly back: Millis | undefined;
}

/**
 * From when on the load balancer used another node, and until when the old one. One that uses all nodes while none is UP does both at
 * once between the old node's end and the new one's coming.
 */
function usedFromTo(run: RunRecord, seen: Seen): Pick<RolloutTimes, 'newUp' | 'oldDown'> {
  const newUp = othersUpFrom(run, seen.move);
  const oldDown = leftAt(run, seen, newUp);
  const isOpen = run.settings.healthCheck.whenNoneUp === 'all';
  if (!isOpen || oldDown === undefined || (newUp !== undefined && newUp <= oldDown)) return { newUp, oldDown };
  return { newUp: oldDown, oldDown: newUp };
}

/** Since when a node other than the old one has been UP that was so at the deletion or came after it. */
function othersUpFrom(run: RunRecord, { oldPod, deletedAt }: Move): Millis | undefined {
  const window = { from: run.startedAt, to: run.endedAt };
  const spans = run.nodes
    .filter((node) => node !== oldPod.node)
    .flatMap((node) => {
      const own = run.loadBalancer.filter((moment) => moment.node === node);
      return spansOf(
        own.map(({ at, isUp }) => ({ at, value: isUp })),
        window,
      );
    });
  const useful = spans.filter(({ value, to }) => value && to > deletedAt).map(({ from }) => from);
  return useful.length === 0 ? undefined : millis(Math.min(...useful));
}

/**
 * When the load balancer stopped using the old node, or the node had an endpoint again before that. With fast drain that is when EndpointSlices
 * say that its pod terminates, but not before another node is UP. If recently UP nodes are used while none is UP, it used the old one
 * until then too.
 */
function leftAt(run: RunRecord, { move, syncedAt, back }: Seen, newUp: Millis | undefined): Millis | undefined {
  const { settings } = run;
  const { whenNoneUp, lastUpFor } = settings.healthCheck;
  const downAt = run.loadBalancer.find(
    (moment) => moment.node === move.oldPod.node && !moment.isUp && moment.at >= move.deletedAt,
  )?.at;
  const drained = settings.fastDrain && syncedAt !== undefined ? Math.max(syncedAt, newUp ?? Infinity) : Infinity;
  const left = Math.min(drained, downAt ?? Infinity, back ?? Infinity);
  if (left === Infinity) return undefined;
  const usedUntil = whenNoneUp === 'lastUp' ? Math.min(left + lastUpFor, newUp ?? Infinity) : left;
  return millis(Math.max(left, usedUntil));
}

/** Bounds of the time of an unobserved event. */
export interface Bounds {
  readonly earliest: Millis;
  readonly latest: Millis;
}

/** Possible time difference between observers of events (logs, watches) and packets: two requests at 20/s. */
export const observationSlack: Millis = millis(100);

/**
 * When a node's proxy had applied what the EndpointSlices said from `at` on; undefined: never, while it was watched. The proxy may be
 * some milliseconds faster than the observer who noted the slice, but not than the deletion; its log has whole milliseconds. Without
 * its log: not before the slice, and no later than `proxyDelay` says.
 */
export function appliedAt(run: RunRecord, node: string, at: Millis, move: Move): Bounds | undefined {
  if (run.syncs === undefined) return { earliest: at, latest: millis(at + proxyDelay(run)) };
  const after = at >= move.deletedAt ? Math.floor(move.deletedAt) : 0;
  const earliest = Math.max(after, at - observationSlack);
  const found = run.syncs.find((sync) => sync.node === node && sync.at >= earliest)?.at;
  return found === undefined ? undefined : { earliest: found, latest: found };
}

/**
 * Longest delay of a proxy behind the EndpointSlices, as packets showed: from an endpoint's no longer being ready until its node's
 * health check said so, or from a new pod's being ready until its first answer. Without either: kube-proxy's longest.
 */
export function proxyDelay(run: RunRecord): Millis {
  const delays = run.moves.flatMap((move) => [...healthDelays(run, move), ...answerDelays(run, move)]);
  if (delays.length === 0) return knownProxyTiming('kube-proxy').noticesTerminating.longest;
  return millis(Math.max(0, ...delays) + observationSlack);
}

function healthDelays(run: RunRecord, { oldPod, deletedAt }: Move): readonly number[] {
  const goneAt = run.endpoints.find(
    ({ node, state, at }) => node === oldPod.node && state !== 'ready' && at >= deletedAt - observationSlack,
  )?.at;
  if (goneAt === undefined) return [];
  const unhealthyAt = run.health.find(
    ({ node, status, at }) => node === oldPod.node && status !== 200 && at >= goneAt - observationSlack,
  )?.at;
  return unhealthyAt === undefined ? [] : [unhealthyAt - goneAt];
}

/** Delays of answers, for paths to all endpoints: there a new endpoint is used as soon as the node knows it. */
function answerDelays(run: RunRecord, { newPod }: Move): readonly number[] {
  if (run.path.kind !== 'node' || run.path.endpoints !== 'all') return [];
  const readyAt = run.pods.find(({ pod, phase }) => pod === newPod.name && phase === 'ready')?.at;
  const answeredAt = run.requests.find(({ answeredBy }) => answeredBy === newPod.name)?.doneAt;
  return readyAt === undefined || answeredAt === undefined ? [] : [answeredAt - readyAt];
}

/** A value that held from `from` until `to`. */
export interface Span<V> {
  readonly from: Millis;
  readonly to: Millis;
  readonly value: V;
}

/**
 * Turns moments ("from here on the value is V") into spans inside a window. Equal neighbours are joined; what was
 * true when the window opened starts at its edge.
 */
export function spansOf<V>(
  moments: readonly { readonly at: Millis; readonly value: V }[],
  window: { readonly from: Millis; readonly to: Millis },
): readonly Span<V>[] {
  const sorted = [...moments].sort((a, b) => a.at - b.at);
  const spans: Span<V>[] = [];
  for (const [index, moment] of sorted.entries()) {
    const from = Math.max(moment.at, window.from) as Millis;
    const to = Math.min(sorted[index + 1]?.at ?? window.to, window.to) as Millis;
    if (to <= from) continue;
    const last = spans.at(-1);
    if (last !== undefined && isDeepStrictEqual(last.value, moment.value) && last.to === from)
      spans[spans.length - 1] = { ...last, to };
    else spans.push({ from, to, value: moment.value });
  }
  return spans;
}
