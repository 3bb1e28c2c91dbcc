import type { ProgressEvent, RunName } from '../model/progress.ts';
import type { CaseStatus } from '../model/report-file.ts';

/** One run's progress. */
export interface RunProgress {
  readonly name: RunName;
  readonly caseIds: readonly string[];
  /** How many cases have ended. */
  readonly ended: number;
  readonly counts: Readonly<Record<CaseStatus, number>>;
}

/** What all runs of an invocation have told so far. */
export interface ProgressState {
  readonly runs: readonly RunProgress[];
  /** What each lane is doing, in order of first mention. */
  readonly lanes: ReadonlyMap<string, string>;
}

/** Nothing told yet. */
export const noProgress: ProgressState = { runs: [], lanes: new Map() };

/** How a run is called where several go on: `iptables-nft dual`, with its round from the second on. */
export function runText({ proxy, cell, round }: RunName): string {
  return `${proxy} ${cell}${round > 1 ? `, round ${round}` : ''}`;
}

/** The state after one more event. */
export function afterEvent(state: ProgressState, event: ProgressEvent): ProgressState {
  switch (event.kind) {
    case 'runStarted':
      return { ...state, runs: [...state.runs, newRun(event.run, event.caseIds)] };
    case 'lane':
      return withLane(state, event.lane, event.text);
    case 'caseStarted':
      return withLane(state, event.lane, `${event.id} (${runText(event.run)})`);
    case 'caseProgress':
      return withLane(state, event.lane, `${event.id} (${runText(event.run)}): ${event.text}`);
    case 'caseEnded':
      return withRun(state, event.run, (run) => ({
        ...run,
        ended: run.ended + 1,
        counts: { ...run.counts, [event.result.status]: run.counts[event.result.status] + 1 },
      }));
    case 'planned':
    case 'runEnded':
      return state;
    default:
      return event satisfies never;
  }
}

function newRun(name: RunName, caseIds: readonly string[]): RunProgress {
  return {
    name,
    caseIds,
    ended: 0,
    counts: { passed: 0, failed: 0, skipped: 0, error: 0 },
  };
}

function withLane(state: ProgressState, lane: string, text: string): ProgressState {
  return { ...state, lanes: new Map([...state.lanes, [lane, text]]) };
}

function withRun(state: ProgressState, name: RunName, change: (run: RunProgress) => RunProgress): ProgressState {
  const runs = state.runs.map((run) => (runText(run.name) === runText(name) ? change(run) : run));
  return { ...state, runs };
}
