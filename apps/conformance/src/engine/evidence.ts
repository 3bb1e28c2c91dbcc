import { messageOf, type Millis, millis } from '@switchyard/core';
import type { CheckResult, InconclusiveCheck } from '../model/report-file.ts';
import type { MachineEvidence } from '../model/test-environment.ts';

/** A request that no proxy forwards takes a few milliseconds. One that took longer than this shows a machine that may have spoilt a check. */
const tolerated: Millis = millis(200);

/** As long as a probe waits for an answer: an answer that came later looks like silence. */
const silenceTolerated: Millis = millis(400);

/** Longest wait for an echo over an open connection, in milliseconds: a busy application answers late, a broken connection never. */
export const echoPatience = 5000;

/** Beginning of the reason of a check without a verdict because the machine was too busy. */
const busy = 'the machine was too busy';

/**
 * A check without a verdict if the machine, and not the proxy, may be the reason of what was seen; undefined: the check counts. `machine`
 * resolves to what it did meanwhile; undefined: not measured. A check has no verdict either if that rejects; rejects itself only with
 * `signal.reason`.
 */
export async function withoutEvidence(
  check: CheckResult,
  machine: () => Promise<MachineEvidence | undefined>,
  signal: AbortSignal,
): Promise<InconclusiveCheck | undefined> {
  const limit = check.isAsExpected ? (isSilence(check.observed) ? silenceTolerated : undefined) : tolerated;
  if (limit === undefined) return undefined;
  const { id, what, expected, observed } = check;
  let evidence: MachineEvidence | undefined;
  try {
    evidence = await machine();
  } catch (error) {
    signal.throwIfAborted();
    return { id, what, because: `how busy the machine was is not known: ${messageOf(error)}` };
  }
  if (evidence === undefined) return undefined;
  const { slowest, shortage } = evidence;
  const late = `a request that no proxy forwards took ${Math.round(slowest)} ms meanwhile`;
  const why = shortage === undefined ? late : `the kernel dropped packets meanwhile: ${shortage}`;
  if (shortage === undefined && slowest < limit) return undefined;
  const because = `${busy}: ${why} (${check.isAsExpected ? observed : `expected ${expected}, saw ${observed}`})`;
  return { id, what, because };
}

/** A request of a load. */
interface LoadRequest {
  readonly scheduledAt: Millis;
  readonly sentAt: Millis;
  readonly doneAt: Millis;
  readonly outcome: string;
}

/** Evidence of a load about the proxy. */
export interface LoadEvidence<Request> {
  /** Requests whose loss is a packet's loss. */
  readonly counting: readonly Request[];
  /** Why it proves nothing that all of these were answered; undefined: it proves that. */
  readonly doubt: string | undefined;
}

/** A request that starts this late, in milliseconds, shows that those before it may have missed what they were for. */
const lateStart = 500;

/** A busy machine is late before and after the answers that show it, too: by this long, in milliseconds. */
const lateAround = 1000;

/**
 * Requests in a row that were not answered in time do not count if another one, of this load or of those `beside` it, was answered late
 * about the same time: a proxy loses a packet or does not, but a client or an application that waits for the processor is late for
 * everything, and seconds of silence end as they begin.
 */
export function loadEvidence<Request extends LoadRequest>(
  requests: readonly Request[],
  beside: readonly LoadRequest[] = requests,
): LoadEvidence<Request> {
  const took = ({ sentAt, doneAt }: LoadRequest): number => doneAt - sentAt;
  const slow = beside.filter((one) => one.outcome === 'answered' && took(one) >= tolerated);
  const isLate = ({ sentAt, doneAt }: LoadRequest): boolean =>
    slow.some((one) => one.sentAt - lateAround <= doneAt && one.doneAt + lateAround >= sentAt);
  const silences = silencesOf(requests).filter((silence) => silence.some(isLate));
  const excused = new Set(silences.flat());
  const counting = requests.filter((one) => !excused.has(one));
  const late = excused.size;
  const start = Math.max(0, ...requests.map(({ scheduledAt, sentAt }) => sentAt - scheduledAt));
  if (late > 0) {
    const slowest = Math.round(Math.max(...slow.map(took)));
    return { counting, doubt: `${busy}: ${late} requests were not answered in time, and others after ${slowest} ms` };
  }
  const doubt = `${busy}: a request was sent ${Math.round(start)} ms after it was due`;
  return { counting, doubt: start < lateStart ? undefined : doubt };
}

/** Requests in a row that were not answered in time. */
function silencesOf<Request extends LoadRequest>(requests: readonly Request[]): readonly (readonly Request[])[] {
  const silences: Request[][] = [];
  let last: Request | undefined;
  for (const one of requests.toSorted((a, b) => a.sentAt - b.sentAt)) {
    if (one.outcome === 'timeout') {
      if (last?.outcome === 'timeout') silences.at(-1)?.push(one);
      else silences.push([one]);
    }
    last = one;
  }
  return silences;
}

/** Why losses of a load prove nothing: the application was not ready for a while, although nothing ended it. */
export function unreadyApplication(pod: string): string {
  return `${busy}: the ready pod ${pod} failed its readiness probe`;
}

/** Least share of a processor with which a program is as fast as it can be. */
const wholeShare = 0.8;

/** Why a proxy that was slow proves nothing: programs only got this share of a processor. Undefined: they got one, or it is not known. */
export function withoutProcessor(share: number | undefined): string | undefined {
  if (share === undefined || share > wholeShare) return undefined;
  return `${busy}: a program got ${Math.round(share * 100)} % of a processor`;
}

/** Whether another attempt of the case may have a verdict. */
export function isWorthRepeating({ because }: InconclusiveCheck): boolean {
  return because.startsWith(busy);
}

/** A packet without an answer: right for a drop, and what a late answer looks like. */
function isSilence(observed: string): boolean {
  return observed === 'drop';
}

/** Checks recorded within this time, in milliseconds, were made together. */
const together = 100;

/** Begins of the evidence of checks, which are recorded when they are done. */
export class EvidenceTimes {
  #from: Millis;
  #last: Millis;

  /** `start`: of the case. */
  constructor(start: Millis) {
    this.#from = start;
    this.#last = start;
  }

  /** When the evidence of a check began that is recorded now: with the check before that was not made together with it. */
  note(now: Millis): Millis {
    if (now - this.#last > together) this.#from = this.#last;
    this.#last = now;
    return this.#from;
  }
}
