import type { RunConfig } from '../config.ts';
import type { ConformanceCase, FamilyCell } from '../model/case.ts';
import type { OnProgress } from '../model/progress.ts';
import type { RunReport } from '../model/report-file.ts';
import { Gate } from '../engine/gate.ts';
import { plannedRuns, type ProxyRun, runProxy } from '../engine/run-proxy.ts';
import { placesForMeasuring } from '../engine/run-round.ts';
import { openLabEnvironment } from './lab-environment.ts';
import type { ProxyProgram } from './proxy-program.ts';

/** One proxy in labs with these families. */
export interface LabRun {
  readonly program: ProxyProgram;
  readonly cell: FamilyCell;
  readonly cases: readonly ConformanceCase[];
  /** Number of labs that share the cases. */
  readonly labs: number;
}

/** Runs, and how many labs run side by side. */
export interface LabRunsOptions extends Pick<RunConfig, 'labName' | 'jobs' | 'seed' | 'rounds' | 'isFailFast'> {
  readonly runs: readonly LabRun[];
  readonly onProgress: OnProgress;
}

const letters = 'abcdefghijklmnopqrstuvwxyz';

/** Runs everything in its own labs, which are removed before this resolves or rejects. Reports in the order of `runs`, then of rounds. */
export async function runLabs(options: LabRunsOptions, signal: AbortSignal): Promise<readonly RunReport[]> {
  const { runs, jobs, rounds, onProgress } = options;
  const about = runs.map(({ program, cell, cases }) => ({ proxy: program.about, cell, cases }));
  onProgress({ kind: 'planned', runs: plannedRuns(about, rounds) });
  const labs = new Gate(jobs);
  const measuring = new Gate(placesForMeasuring);
  const broken = new AbortController();
  const either = AbortSignal.any([signal, broken.signal]);
  let hasFailed = false;
  const shared = {
    ...options,
    measuring,
    onFailure: () => (hasFailed = true),
    isOver: () => options.isFailFast && hasFailed,
  };
  const ended = await Promise.allSettled(
    runs.map((run, index) =>
      labs.run(
        run.labs,
        async () => {
          return runLab(run, { ...shared, index }, either).catch((error: unknown) => {
            broken.abort(error);
            throw error;
          });
        },
        either,
      ),
    ),
  );
  return ended.flatMap((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}

interface Shared extends LabRunsOptions, Pick<ProxyRun, 'measuring' | 'onFailure' | 'isOver'> {
  readonly index: number;
}

async function runLab(run: LabRun, shared: Shared, signal: AbortSignal): Promise<readonly RunReport[]> {
  const { program, cell, cases } = run;
  const { labName, index, onProgress } = shared;
  const labs = Math.max(1, Math.min(run.labs, shared.jobs, cases.length, letters.length));
  return runProxy(
    {
      ...shared,
      target: 'lab',
      proxy: program.about,
      cell,
      cases,
      laneNames: Array.from({ length: labs }, (_, lane) => `${labName}${letters[index % 26]}${letters[lane]}`),
      openEnvironment: (name, inner) => {
        const tell = (text: string): void => onProgress({ kind: 'lane', lane: name, text });
        return openLabEnvironment({ name, cell, program, cases, onProgress: tell }, inner);
      },
    },
    signal,
  );
}
