import { knownProxyTiming } from '@switchyard/loss';
import { type Millis, millis } from '@switchyard/core';
import type { Move, RunRecord } from './run-record.ts';

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
