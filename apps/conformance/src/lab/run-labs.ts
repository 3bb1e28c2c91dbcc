import { destroyLab, listLabs } from '@switchyard/lab';
import { type ProxyRun, runProxies, type RunsOptions } from '../engine/run-round.ts';
import type { ConformanceCase, FamilyCell, OnProgress } from '../model/case.ts';
import type { RunReport } from '../model/report-file.ts';
import { openLabEnvironment } from './lab-environment.ts';
import type { ProxyProgram } from './proxy-program.ts';

/** One proxy in labs with these families. */
export interface LabRun {
  readonly program: ProxyProgram;
  readonly cell: FamilyCell;
  readonly cases: readonly ConformanceCase[];
  /** Number of labs that share the cases. */
  readonly labs: number;
  /** The nodes keep Linux' limits on ICMP errors. Default: they send all. */
  readonly hasIcmpLimits?: boolean;
}

/** Runs, and the prefix of their labs' names. */
export interface LabRunsOptions extends RunsOptions {
  readonly labName: string;
  readonly runs: readonly LabRun[];
}

const letters = 'abcdefghijklmnopqrstuvwxyz';

/** Runs everything in its own labs, which are removed before this resolves or rejects. Reports in the order of `runs`, then of rounds. */
export async function runLabs(options: LabRunsOptions, signal: AbortSignal): Promise<readonly RunReport[]> {
  const { labName, jobs, onProgress } = options;
  const runs = options.runs.map(({ labs, ...run }, index): ProxyRun => {
    const { program, cell, cases } = run;
    const length = Math.max(1, Math.min(labs, jobs, cases.length, letters.length));
    return {
      target: 'lab',
      proxy: program.about,
      cell,
      cases,
      laneNames: Array.from({ length }, (_, lane) => `${labName}${letters[index % 26]}${letters[lane]}`),
      openEnvironment: (name, inner) => {
        const tell = (text: string): void => onProgress({ kind: 'lane', lane: name, text });
        return openLabEnvironment({ name, ...run, onProgress: tell }, inner);
      },
    };
  });
  return runProxies(runs, options, signal);
}

/** Removes labs of killed runs; labs of running ones stay. */
export async function removeDeadLabs(prefix: string, onProgress: OnProgress): Promise<void> {
  const pattern = new RegExp(`^${prefix}[a-z]{2}$`);
  const dead = (await listLabs()).filter(({ name, status }) => status === 'dead' && pattern.test(name));
  for (const { name } of dead) {
    onProgress({ kind: 'lane', lane: name, text: 'removing what an earlier run left' });
    await destroyLab(name);
  }
}
