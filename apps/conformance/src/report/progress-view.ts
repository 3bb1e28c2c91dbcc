import { amountText } from './amount-text.ts';
import { stripVTControlCharacters } from 'node:util';
import { type Clock, type Millis, millis } from '@switchyard/core';
import type { ProgressEvent } from '../model/progress.ts';
import type { CaseResult, CaseStatus, CheckResult } from '../model/report-file.ts';
import { CaseCosts, runText } from './case-costs.ts';
import { countsText, noCounts } from './counts.ts';
import { durationText } from './duration-text.ts';
import { failedChecks } from './failures.ts';
import { failureText } from './failure-text.ts';
import { type Painter, painter } from './painter.ts';
import { indented, plainText } from './plain-text.ts';

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
