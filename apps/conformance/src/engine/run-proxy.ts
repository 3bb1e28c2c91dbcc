import { release } from 'node:os';
import { millis, systemClock } from '@switchyard/core';
import type { TestEnvironment } from '../model/test-environment.ts';
import type { FamilyCell } from '../model/case.ts';
import type { PlannedRun, RunName } from '../model/progress.ts';
import type { CaseResult, ProxyUnderTest, RunReport, Target } from '../model/report-file.ts';
import { notRun, type RoundOptions, runRound } from './run-round.ts';
import { seededRandom } from './seeded-random.ts';

/** All rounds of one proxy in one cell. */
export interface ProxyRun extends Pick<RoundOptions, 'cases' | 'onProgress' | 'measuring' | 'onFailure' | 'isOver'> {
  readonly target: Target;
  readonly proxy: ProxyUnderTest;
  readonly cell: FamilyCell;
  /** Names of the environments that run side by side. At least one. */
  readonly laneNames: readonly string[];
  readonly openEnvironment: (name: string, signal: AbortSignal) => Promise<TestEnvironment>;
  readonly seed: number;
  readonly rounds: number;
}

/** The planned runs: each one in every round. */
export function plannedRuns(
  runs: readonly Pick<ProxyRun, 'proxy' | 'cell' | 'cases'>[],
  rounds: number,
): readonly PlannedRun[] {
  return runs.flatMap(({ proxy, cell, cases }) => {
    const caseIds = cases.map(({ id }) => id);
    return Array.from({ length: rounds }, (_, index) => ({
      run: { proxy: proxy.name, cell, round: index + 1 },
      caseIds,
    }));
  });
}

/** Runs all rounds on the same environments and removes these afterwards. If one cannot be built, all cases end with an error. */
export async function runProxy(options: ProxyRun, signal: AbortSignal): Promise<readonly RunReport[]> {
  const { laneNames, openEnvironment, rounds, proxy, cell, onProgress, seed } = options;
  await using stack = new AsyncDisposableStack();
  const opened = await Promise.allSettled(laneNames.map((name) => openEnvironment(name, signal)));
  for (const one of opened) if (one.status === 'fulfilled') stack.use(one.value);
  signal.throwIfAborted();
  const broken = opened.find((one) => one.status === 'rejected');
  const lanes = opened.flatMap((one, index) =>
    one.status === 'fulfilled' ? [{ name: laneNames[index] ?? '', environment: one.value }] : [],
  );
  const reports: RunReport[] = [];
  for (let round = 1; round <= rounds; round++) {
    const startedAt = new Date(systemClock.now()).toISOString();
    const start = systemClock.monotonic();
    const run = { proxy: proxy.name, cell, round };
    const results =
      broken === undefined
        ? await runRound({ ...options, lanes, run, random: seededRandom(seed) }, signal)
        : withoutEnvironment(options, run, broken.reason as Error);
    const duration = millis(systemClock.monotonic() - start);
    const about = { target: options.target, proxy, cell, kernel: release(), seed, round };
    reports.push({ ...about, startedAt, duration, cases: results });
    if (broken !== undefined) break;
  }
  for (const { name } of lanes) onProgress({ kind: 'lane', lane: name, text: 'removing the environment' });
  return reports;
}

/** Results of a run without an environment: errors, because nothing is known about the proxy. */
function withoutEnvironment(
  { cases, laneNames, onProgress }: ProxyRun,
  run: RunName,
  reason: Error,
): readonly CaseResult[] {
  const lane = laneNames[0] ?? '';
  const results = cases.map((one) => notRun(one, 'error', `no environment to run on: ${reason.message}`));
  onProgress({ kind: 'runStarted', run, caseIds: cases.map(({ id }) => id) });
  for (const result of results) onProgress({ kind: 'caseEnded', run, lane, result });
  onProgress({ kind: 'runEnded', run });
  return results;
}
