import { type Clock, type Millis, millis } from '@switchyard/core';
import type { ProgressEvent, PlannedRun, RunName } from '../model/case.ts';
import type { CaseResult, CaseStatus, CheckResult } from '../model/report-file.ts';
import { countsText, noCounts } from './columns.ts';
import { failedChecks, failureText } from './failures.ts';
import { amountText, durationText, type Painter, painter, indented, plainText } from './texts.ts';
import { stripVTControlCharacters } from 'node:util';

/** Output and options of the progress view. */
export interface ProgressOptions {
  /** Standard error, as a rule. */
  readonly write: (text: string) => void;
  /** Columns of the terminal, read at each drawing; undefined: not a terminal, so plain lines. */
  readonly width: () => number | undefined;
  /** Each case is a line, not only those that failed. */
  readonly isVerbose: boolean;
  readonly colours: boolean;
  readonly clock: Clock;
}

/** Interval at which a terminal's block is redrawn without events, so that its times advance. */
const beat = millis(250);
/** Least time between two drawings, in milliseconds. */
const shortest = 80;
/** Interval of progress lines in plain output, in milliseconds. */
const plainInterval = 30_000;

/**
 * Shows the progress of a run. On a terminal: one block below the last line that is redrawn; failures scroll above it. Elsewhere: a line
 * per failed case with its checks, and a progress line twice a minute. Dispose it before the summary is printed.
 */
export class ProgressView implements AsyncDisposable {
  readonly #options: ProgressOptions;
  readonly #paint: Painter;
  readonly #startedAt: Millis;
  readonly #stop = new AbortController();
  readonly #ticking: Promise<void>;
  readonly #costs = new CaseCosts();
  /** Cases that ended, of each run that has started, by its name. */
  readonly #counts = new Map<string, Record<CaseStatus, number>>();
  /** Current work of each lane, in order of first mention. */
  readonly #lanes = new Map<string, string>();
  #drawnLines = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #plainAt: number;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#paint = painter(options.colours);
    this.#startedAt = options.clock.monotonic();
    this.#plainAt = this.#startedAt;
    this.#ticking = this.#tick();
  }

  /** Takes one event. Bound, so that it can be passed as `OnProgress`. */
  readonly onEvent = (event: ProgressEvent): void => {
    const now = this.#options.clock.monotonic();
    this.#note(event);
    this.#costs.add(event, now);
    const line = this.#lineOf(event);
    if (line !== '') this.#print(line);
    if (this.#options.width() === undefined) this.#plainProgress(now);
    else if (line !== '' || now - this.#drawnAt >= shortest) this.#draw();
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#ticking;
    this.#erase();
  }

  #note(event: ProgressEvent): void {
    switch (event.kind) {
      case 'runStarted':
        this.#counts.set(runText(event.run), noCounts());
        break;
      case 'lane':
        this.#lanes.set(event.lane, event.text);
        break;
      case 'caseStarted':
        this.#lanes.set(event.lane, `${event.id} (${runText(event.run)})`);
        break;
      case 'caseProgress':
        this.#lanes.set(event.lane, `${event.id} (${runText(event.run)}): ${event.text}`);
        break;
      case 'caseEnded': {
        const counts = this.#counts.get(runText(event.run));
        if (counts !== undefined) counts[event.result.status] += 1;
        break;
      }
    }
  }

  async #tick(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.#options.clock.sleep(beat, signal);
      } catch {
        return;
      }
      if (this.#options.width() !== undefined) this.#draw();
    }
  }

  /** Lines of an event that stay on the screen; empty: none. */
  #lineOf(event: ProgressEvent): string {
    const { isVerbose, width } = this.#options;
    if (event.kind === 'caseEnded') return this.#caseLine(event.result, runText(event.run));
    if (event.kind === 'runStarted') return `${runText(event.run)}: ${amountText(event.caseIds.length, 'case')}`;
    if (event.kind === 'runEnded') {
      return `${runText(event.run)}: ${countsText(this.#counts.get(runText(event.run)) ?? noCounts())}`;
    }
    if (event.kind === 'lane' && (isVerbose || width() === undefined)) {
      return this.#paint.soft(plainText(`${event.lane}: ${event.text}`));
    }
    if (event.kind === 'caseProgress' && isVerbose) return this.#paint.soft(plainText(`${event.id}: ${event.text}`));
    return '';
  }

  #caseLine(result: CaseResult, run: string): string {
    const { status, duration, because } = result;
    const paint = this.#paint;
    const id = plainText(result.id);
    const where = paint.soft(`${run}, ${durationText(duration)}`);
    if (status === 'failed' || status === 'error') {
      const word = status === 'failed' ? paint.bad('FAILED') : paint.warn('ERROR ');
      const checks = failedChecks([result]);
      const isBrief = status === 'error' || this.#options.width() !== undefined;
      const text = isBrief ? briefText(result, checks) : failureText(result, checks, paint);
      return `${word} ${id}  ${where}${text === '' ? '' : `\n${indented(text, 2)}`}`;
    }
    if (!this.#options.isVerbose) return '';
    if (status === 'passed') return `${paint.good('passed')} ${id}  ${where}`;
    return `${paint.soft('skip  ')} ${id}  ${paint.soft(plainText(because ?? 'without a reason'))}`;
  }

  #plainProgress(now: number): void {
    if (now - this.#plainAt < plainInterval) return;
    this.#plainAt = now;
    this.#options.write(`${this.#totalLine()}\n`);
  }

  #totalLine(): string {
    const runs = [...this.#counts.values()];
    const now = this.#options.clock.monotonic();
    const elapsed = millis(now - this.#startedAt);
    const ended = runs.reduce((sum, run) => sum + run.passed + run.failed + run.skipped + run.error, 0);
    const failed = runs.reduce((sum, run) => sum + run.failed, 0);
    const errors = runs.reduce((sum, run) => sum + run.error, 0);
    const left = this.#costs.left(now);
    const parts = [
      `${ended} of ${this.#costs.expected} cases`,
      failed > 0 ? this.#paint.bad(`${failed} failed`) : '0 failed',
      ...(errors > 0 ? [this.#paint.warn(amountText(errors, 'error'))] : []),
      durationText(elapsed),
      ...(left === undefined || left === 0 ? [] : [`about ${durationText(left)} left`]),
    ];
    return parts.join(', ');
  }

  #print(text: string): void {
    this.#erase();
    this.#options.write(`${text}\n`);
  }

  #draw(): void {
    const width = this.#options.width();
    if (width === undefined || this.#counts.size + this.#lanes.size === 0) return;
    const lanes = [...this.#lanes].map(([lane, text]) => shortened(plainText(`  ${lane}: ${text}`), width));
    const total = this.#totalLine();
    const fits = stripVTControlCharacters(total).length < width;
    const lines = [...lanes.map(this.#paint.soft), fits ? total : shortened(stripVTControlCharacters(total), width)];
    this.#erase();
    this.#options.write(`${lines.join('\n')}\n`);
    this.#drawnLines = lines.length;
    this.#drawnAt = this.#options.clock.monotonic();
  }

  /** Up over the block, and everything below the cursor away. */
  #erase(): void {
    if (this.#drawnLines > 0) this.#options.write(`\u001B[${this.#drawnLines}A\u001B[J`);
    this.#drawnLines = 0;
  }
}

/** A line that is longer than the terminal is wide would take two, and `#erase` leave one behind. */
function shortened(text: string, width: number): string {
  const flat = text.replaceAll(/\s*\n\s*/g, ' ');
  return flat.length < width ? flat : `${flat.slice(0, Math.max(1, width - 2))}…`;
}

/** A short form for terminals, where the summary with all details follows. */
function briefText({ because }: CaseResult, checks: readonly CheckResult[]): string {
  const lines = checks.map(({ what, expected, observed }) => `${what}: expected ${expected}, observed ${observed}`);
  return [...(because === undefined ? [] : [because]), ...lines].map(plainText).join('\n');
}

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
