import { assertNever, millis, type Millis } from '@switchyard/core';
import { changeApplies } from './apply-delays.ts';
import type { PacketLoss, PodTimes, RequestResult, RolloutRecording } from './recording.ts';

/** A lost request with its cause. All but `slowAnswer` are joined by time. */
export interface LostRequest extends RequestResult {
  /** An agent's cause, `noReadyPod`, `podEnds`, `slowAnswer` or `unexplained`. */
  readonly cause: string;
  readonly why: string;
}

/** Surroundings of an explanation. */
export interface CauseOptions {
  /** Name of the Service that the requests go through. */
  readonly service: string;
  /** Longest time until the proxies have applied a change, where no agent has seen it. */
  readonly delay: Millis;
}

/** A time in which requests are lost for one reason. */
interface LossPeriod {
  readonly from: number;
  readonly to: number;
  readonly cause: string;
  readonly why: string;
}

/** An agent reads the kernel's counts twice a second. */
const packetWindow = 500;
/** Least tolerance between two observers on this machine. */
const tolerance = 20;
/** Time by which kubectl may print a change too late, on a busy machine. */
const printDelay = 150;

/** Requests that were not answered, in their order, each with the first cause that was there at its time. */
export function explainRequests(recording: RolloutRecording, options: CauseOptions): readonly LostRequest[] {
  const packets = recording.packets.map((loss) => packetPeriod(loss, recording));
  const empty = periodsWithoutReady(recording, options);
  const ends = periodsOfEnds(recording, options);
  const broken = recording.pods.flatMap(periodOfOpenConnections);
  return (recording.requests ?? [])
    .filter(({ outcome }) => outcome !== 'answered')
    .map((request) => {
      const periods = wasAccepted(request)
        ? [...ends, ...broken, ...packets, ...empty]
        : [...packets, ...empty, ...ends];
      const found = periods.find(({ from, to }) => request.sentAt <= to && request.doneAt >= from);
      const { cause, why } = found ?? unexplained(request);
      return { ...request, cause, why };
    });
}

/** Whether a pod, or a load balancer, had accepted the connection: then no Service refused it. */
function wasAccepted({ outcome }: RequestResult): boolean {
  return outcome === 'reset' || outcome === 'empty' || outcome === 'unanswered' || outcome === 'error';
}

function unexplained({ outcome }: RequestResult): Pick<LossPeriod, 'cause' | 'why'> {
  if (outcome === 'unanswered') {
    return { cause: 'slowAnswer', why: 'the connection was accepted, and the application did not answer in time' };
  }
  return { cause: 'unexplained', why: `no pod ended and no agent reported a loss at its time; ${meaning(outcome)}` };
}

function meaning(outcome: RequestResult['outcome']): string {
  switch (outcome) {
    case 'answered':
      return 'it was answered';
    case 'timeout':
      return 'no answer came';
    case 'unanswered':
      return 'a connection was accepted, and no answer came';
    case 'dropped':
      return "this machine's kernel refused to send it";
    case 'refused':
      return 'the connection was refused';
    case 'reset':
      return 'the connection was reset';
    case 'empty':
      return 'the connection was closed without an answer';
    case 'unreachable':
      return 'there was no route';
    case 'error':
      return 'its HTTP status was an error';
    case 'failed':
      return 'no connection could be made, such as for an unknown name or certificate';
    default:
      return assertNever(outcome);
  }
}

/** Largest error of a node's times; 0 if it is not known. */
function accuracyOf({ nodes }: RolloutRecording, node: string): number {
  return nodes.find((one) => one.node === node)?.accuracy ?? 0;
}

function packetPeriod({ at, node, cause, why }: PacketLoss, recording: RolloutRecording): LossPeriod {
  const error = accuracyOf(recording, node) + tolerance;
  return { from: at - packetWindow - error, to: at + error, cause, why: `${node}: ${why}` };
}

/** Times at which the Service had no ready endpoint, until the last node has applied the next one. */
function periodsWithoutReady(recording: RolloutRecording, { service, delay }: CauseOptions): readonly LossPeriod[] {
  const applies = isObserved(recording) ? [] : changeApplies(recording);
  const ready = new Set<string>();
  const periods: LossPeriod[] = [];
  let from: number | undefined;
  for (const change of recording.slices.filter((one) => one.service === service)) {
    if (change.condition === 'ready') ready.add(change.address);
    else ready.delete(change.address);
    if (ready.size === 0) from ??= change.isBefore ? undefined : change.at;
    else if (from !== undefined) {
      const { slowest } = applies.find((one) => one.at === change.at && one.address === change.address) ?? {};
      periods.push(withoutReady(service, { from, to: slowest?.at ?? change.at + delay }));
      from = undefined;
    }
  }
  return from === undefined ? periods : [...periods, withoutReady(service, { from, to: Number.POSITIVE_INFINITY })];
}

function withoutReady(service: string, { from, to }: Pick<LossPeriod, 'from' | 'to'>): LossPeriod {
  return { from: from - tolerance, to: to + tolerance, cause: 'noReadyPod', why: `no pod of ${service} was ready` };
}

/** Beside another proxy it is not known when that has applied a change. */
function isObserved({ nodes }: RolloutRecording): boolean {
  return nodes.some(({ isObserver }) => isObserver);
}

/** Times between a pod's deletion and the last node's apply of it. */
function periodsOfEnds(recording: RolloutRecording, { service, delay }: CauseOptions): readonly LossPeriod[] {
  const applies = isObserved(recording) ? [] : changeApplies(recording).filter((one) => one.service === service);
  return recording.pods.flatMap(({ name, deleted }) => {
    if (deleted === undefined) return [];
    const going = applies.find(({ pod, condition }) => pod === name && condition !== 'ready');
    const applied = going?.slowest;
    const until = millis(Math.max(0, applied === undefined ? delay : applied.at - deleted));
    const why =
      applied === undefined
        ? `pod ${name} was deleted, and clients may be sent to it for ${secondsText(until)} more`
        : `pod ${name} was deleted, and ${applied.node} sent to it for ${secondsText(until)} more`;
    const error = tolerance + (applied === undefined ? 0 : accuracyOf(recording, applied.node));
    return [{ from: deleted - printDelay, to: deleted + until + error, cause: 'podEnds', why }];
  });
}

/** The time in which a pod may break connections that it had accepted: until it is removed. */
function periodOfOpenConnections({ name, deleted, removed }: PodTimes): readonly LossPeriod[] {
  if (deleted === undefined) return [];
  const why = `pod ${name} ended, and had accepted the connection`;
  const to = removed === undefined ? Number.POSITIVE_INFINITY : removed + tolerance;
  return [{ from: deleted - printDelay, to, cause: 'podEnds', why }];
}

function secondsText(time: Millis): string {
  return `${(time / 1000).toFixed(3)} s`;
}
