import { millis, type Millis } from '@switchyard/core';
import type { EndpointMoment, LoadPath, Move, PodMoment, RequestRecord, RunRecord } from '../run-record.ts';
import { deletedAt, syntheticRun } from './synthetic-run.ts';

const at = (second: number): Millis => millis(deletedAt + second * 1000);

/** A pod's life in seconds after the first deletion; undefined: that did not happen while it was watched. */
export interface PodTimes {
  readonly name: string;
  readonly node: string;
  readonly readyAt: number;
  readonly deletedAt?: number;
  readonly endedAt?: number;
}

/** A run made of pods' lives: slices follow 10 ms later, and the proxies' applies are not observed. */
export function runOf(options: {
  readonly path: LoadPath;
  /** Old and new pods, pairwise, in the order of deletion. */
  readonly pods: readonly (readonly [PodTimes, PodTimes])[];
  readonly terminatingFallback: boolean;
  /** Seconds in which requests are lost, by from and to. */
  readonly lost?: readonly [number, number];
  readonly loadBalancer?: RunRecord['loadBalancer'];
  readonly health?: RunRecord['health'];
}): RunRecord {
  const { path, pods, terminatingFallback, loadBalancer = [], health = [] } = options;
  const base = syntheticRun({ terminatingFallback });
  const all = pods.flat();
  const moves = pods.map(([oldPod, newPod]): Move => ({ oldPod, newPod, deletedAt: at(oldPod.deletedAt ?? 0) }));
  const [first, ...others] = moves;
  if (first === undefined) throw new Error('a run has at least one move');
  return {
    ...base,
    path,
    moves: [first, ...others],
    endedAt: at(30),
    syncs: undefined,
    pods: all.flatMap(podMomentsOf).sort((a, b) => a.at - b.at),
    endpoints: base.nodes.flatMap((node) => endpointsOf(all, node)),
    requests: requestsOf(options.lost),
    loadBalancer,
    health,
  };
}

function podMomentsOf({ name, node, ...times }: PodTimes): readonly PodMoment[] {
  const moment = (second: number | undefined, phase: PodMoment['phase']): readonly PodMoment[] =>
    second === undefined ? [] : [{ at: at(second), pod: name, node, phase }];
  return [...moment(times.readyAt, 'ready'), ...moment(times.deletedAt, 'deleting'), ...moment(times.endedAt, 'ended')];
}

function endpointsOf(pods: readonly PodTimes[], node: string): readonly EndpointMoment[] {
  const own = pods.filter((pod) => pod.node === node);
  const times = own.flatMap(({ readyAt, deletedAt: going, endedAt }) => [readyAt, going, endedAt]);
  const changes = [-100, ...times.filter((time) => time !== undefined)].sort((a, b) => a - b);
  return changes.map((second) => ({ at: at(second + 0.01), node, state: stateAt(own, second) }));
}

function stateAt(pods: readonly PodTimes[], second: number): EndpointMoment['state'] {
  const isBefore = (time: number | undefined): boolean => time === undefined || second < time;
  const there = pods.filter(({ readyAt, endedAt }) => second >= readyAt && isBefore(endedAt));
  if (there.some(({ deletedAt: going }) => isBefore(going))) return 'ready';
  return there.length > 0 ? 'servingTerminating' : 'none';
}

/** 20/s from -5 to 30 s. */
function requestsOf(lost: readonly [number, number] = [0, 0]): readonly RequestRecord[] {
  return Array.from({ length: 35 * 20 }, (_, sequence) => {
    const second = -5 + sequence / 20;
    const isLost = second >= lost[0] && second < lost[1];
    const time = at(second);
    const answer = isLost ? undefined : second < lost[1] ? 'old' : 'new';
    return {
      sequence,
      scheduledAt: time,
      sentAt: time,
      doneAt: millis(time + 2),
      outcome: isLost ? 'timeout' : 'answered',
      answeredBy: answer,
    };
  });
}
