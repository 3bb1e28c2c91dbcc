import { millis } from '@switchyard/core';
import type { ProgressEvent, RunName } from '../model/case.ts';
import { type CaseResult, type ReportFile, reportOf, type RunAbout } from '../model/report-file.ts';

interface PartialRun {
  readonly about: RunAbout;
  readonly results: CaseResult[];
}

/** Gathers results while they come, for a report of a run that is stopped. */
export class PartialReport {
  readonly #runs = new Map<string, PartialRun>();

  note(event: ProgressEvent): void {
    if (event.kind === 'runStarted' && event.about !== undefined)
      this.#runs.set(keyOf(event.run), { about: event.about, results: [] });
    if (event.kind === 'caseEnded') this.#runs.get(keyOf(event.run))?.results.push(event.result);
  }

  /** The cases that have ended; undefined if none has. */
  report(): ReportFile | undefined {
    const runs = [...this.#runs.values()].filter(({ results }) => results.length > 0);
    if (runs.length === 0) return undefined;
    return reportOf(
      runs.map(({ about, results }) => ({
        ...about,
        duration: millis(Math.max(0, Date.parse(lastOf(results)) - Date.parse(about.startedAt))),
        cases: results,
      })),
    );
  }
}

function keyOf({ proxy, cell, round }: RunName): string {
  return `${proxy} ${cell} ${round}`;
}

/** When the last of these cases started: what a stopped run has of its own time. */
function lastOf(results: readonly CaseResult[]): string {
  return (
    results
      .map(({ startedAt }) => startedAt)
      .toSorted()
      .at(-1) ?? ''
  );
}
