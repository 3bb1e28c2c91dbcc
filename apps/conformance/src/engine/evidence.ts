import { messageOf, type Millis, millis } from '@switchyard/core';
import type { CheckResult, InconclusiveCheck } from '../model/report-file.ts';
import type { MachineEvidence } from '../model/test-environment.ts';

/** A request that no proxy forwards takes a few milliseconds. One that took longer than this shows a machine that may have spoilt a check. */
const tolerated: Millis = millis(200);

/** As long as a probe waits for an answer: an answer that came later looks like silence. */
const silenceTolerated: Millis = millis(400);

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

/** A request that starts this late, in milliseconds, shows that those before it may have missed what they were for. */
const lateStart = 500;

/** Why requests without a loss prove nothing: they were not sent in time. Undefined: they were. */
export function notSentInTime(
  requests: readonly { readonly scheduledAt: Millis; readonly sentAt: Millis }[],
): string | undefined {
  const latest = Math.max(0, ...requests.map(({ scheduledAt, sentAt }) => sentAt - scheduledAt));
  return latest < lateStart ? undefined : `${busy}: a request was sent ${Math.round(latest)} ms after it was due`;
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
