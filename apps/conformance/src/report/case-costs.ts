import { type Millis, millis } from '@switchyard/core';
import type { PlannedRun, ProgressEvent, RunName } from '../model/progress.ts';

/** One case of one run. */
interface Due {
  readonly kind: string;
  /** Its share of the lane's time so far, in ms; cases that run together share the time. */
  cost: number;
  hasStarted: boolean;
  hasEnded: boolean;
}

/** Share of all cases, 0 to 1, that must have ended before an estimate. */
const leastKnown = 0.05;

/** Name of a run among several: `iptables-nft dual`, with its round from the second on. */
export function runText({ proxy, cell, round }: RunName): string {
  return `${proxy} ${cell}${round > 1 ? `, round ${round}` : ''}`;
}

/** Running cases of a lane, and the time until which its time has been distributed. */
interface Lane {
  readonly running: Set<Due>;
  sharedUntil: number;
}

/**
 * Estimates how long it will still take, from earlier cases: one is expected to cost what those of its kind (the first word of
 * its id) did, and lanes to go on side by side. Duration alone would not do: the cases of a batch all last as long as the batch.
 */
export class CaseCosts {
  readonly #due = new Map<string, Due>();
  readonly #lanes = new Map<string, Lane>();

  /** Takes an event that happened at this time of a monotonic clock. */
  add(event: ProgressEvent, now: Millis): void {
    if (event.kind === 'planned') for (const run of event.runs) this.#expect(run);
    if (event.kind === 'runStarted') this.#expect(event);
    if (event.kind !== 'caseStarted' && event.kind !== 'caseEnded') return;
    const lane = this.#lanes.get(event.lane) ?? { running: new Set<Due>(), sharedUntil: now };
    this.#lanes.set(event.lane, lane);
    share(lane, now);
    const id = event.kind === 'caseStarted' ? event.id : event.result.id;
    const due = this.#due.get(`${runText(event.run)} ${id}`);
    if (due === undefined) return;
    if (event.kind === 'caseStarted') {
      due.hasStarted = true;
      lane.running.add(due);
    } else {
      due.hasEnded = true;
      lane.running.delete(due);
    }
  }

  /** Number of cases of all announced runs. */
  get expected(): number {
    return this.#due.size;
  }

  #expect({ run, caseIds }: PlannedRun): void {
    for (const id of caseIds) {
      const due = { kind: id.split('/', 1)[0] ?? '', cost: 0, hasStarted: false, hasEnded: false };
      this.#due.set(`${runText(run)} ${id}`, due);
    }
  }

  /** Undefined until enough is known; 0 at the end. */
  left(now: Millis): Millis | undefined {
    for (const lane of this.#lanes.values()) share(lane, now);
    const all = [...this.#due.values()];
    const waiting = all.filter(({ hasEnded }) => !hasEnded);
    if (waiting.length === 0) return all.length === 0 ? undefined : millis(0);
    const known = all.filter(({ hasEnded, hasStarted }) => hasEnded && hasStarted).length;
    if (known < all.length * leastKnown) return undefined;
    const means = meansByKind(all);
    const mean = meanOf([...means.values()]);
    if (mean === undefined) return undefined;
    const cost = waiting.reduce((sum, due) => sum + Math.max(0, (means.get(due.kind) ?? mean) - due.cost), 0);
    return millis(cost / Math.max(1, this.#lanes.size));
  }
}

/** The lane's time since it was shared out last goes to the cases that it is at, in equal parts. */
function share(lane: Lane, now: number): void {
  for (const due of lane.running) due.cost += (now - lane.sharedUntil) / lane.running.size;
  lane.sharedUntil = now;
}

/** Mean cost by kind. For a kind without an ended case: twice the cost of its running ones, which are assumed to be half done. */
function meansByKind(all: readonly Due[]): ReadonlyMap<string, number> {
  const byKind = Map.groupBy(all, ({ kind }) => kind);
  const means = [...byKind].flatMap(([kind, some]): readonly [string, number][] => {
    const ended = meanOf(some.filter(({ hasEnded, hasStarted }) => hasEnded && hasStarted).map(({ cost }) => cost));
    const running = meanOf(some.filter(({ cost }) => cost > 0).map(({ cost }) => cost));
    const mean = ended ?? (running === undefined ? undefined : running * 2);
    return mean === undefined ? [] : [[kind, mean]];
  });
  return new Map(means);
}

function meanOf(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length;
}
