import { type IpFamily, ipFamilies } from '@switchyard/core';
import { allScenarios, type AltitudeResult, type Scenario } from '../../src/index.ts';
import { type LabMode, labLanes } from './lab-mode.ts';
import { runInLab } from './run-in-lab.ts';
import { Stage } from './stage.ts';

/** One scenario as one mode must do it. */
export interface LabRun {
  readonly mode: LabMode;
  readonly scenario: Scenario;
}

/** All of a mode, those with the same agent flags behind each other: another flag is another start of the agent. */
export function runsOf(mode: LabMode): readonly LabRun[] {
  const runs = allScenarios(mode.dataplane).map((scenario) => ({ mode, scenario }));
  const byFlags = Map.groupBy(runs, ({ scenario }) => JSON.stringify(scenario.agent));
  return [...byFlags.values()].flat();
}

/** What came of a run in the lab. */
export type LabResult =
  | { readonly status: 'ran'; readonly result: AltitudeResult }
  /** This machine lacks what the mode needs. */
  | { readonly status: 'cannot'; readonly because: string };

/** Whether the scenario is one for the lab. */
export function isInLab({ altitudes }: Scenario): boolean {
  return altitudes.run.includes('lab');
}

/**
 * Runs scenarios in a lab for each lane and family. The most of it is waiting, for drops are waits: so all labs go on side by
 * side, ahead of whoever asks for the result.
 */
export class LabRuns implements AsyncDisposable {
  readonly #stages: Promise<Stage>[] = [];
  readonly #results = new Map<LabRun, Promise<LabResult>>();

  /** Begins with the labs, and with these runs as soon as their lab stands. */
  constructor(runs: ReadonlySet<LabRun>, signal: AbortSignal) {
    const all = [...runs].map(({ scenario }) => scenario);
    for (const [index, lane] of labLanes.entries()) {
      for (const family of ipFamilies) {
        const own = [...runs].filter(({ mode, scenario }) => lane.includes(mode) && scenario.ipFamily === family);
        if (own.length > 0) this.#start(Stage.open(labName(index, family), all, signal), own, signal);
      }
    }
  }

  /** What a scenario showed. Rejects where the lab or the run failed. */
  result(run: LabRun): Promise<LabResult> {
    const result = this.#results.get(run);
    if (result === undefined) throw new Error(`${run.mode.name} was not asked to run ${run.scenario.id}`);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opened = await Promise.allSettled(this.#stages);
    await Promise.all(
      opened.map((stage) => (stage.status === 'fulfilled' ? stage.value[Symbol.asyncDispose]() : undefined)),
    );
  }

  /** One after the other, however the one before ended. */
  #start(stage: Promise<Stage>, runs: readonly LabRun[], signal: AbortSignal): void {
    this.#stages.push(stage);
    let before: Promise<unknown> = stage;
    for (const run of runs) {
      const go = async (): Promise<LabResult> => {
        const { scenario, mode } = run;
        const because = mode.obstacle?.((await stage).lab);
        if (because !== undefined) return { status: 'cannot', because };
        return { status: 'ran', result: await runInLab(scenario, { stage: await stage, mode }, signal) };
      };
      const result = before.then(go, go);
      result.catch(() => undefined); // told to whoever asks for it
      this.#results.set(run, result);
      before = result;
    }
  }
}

/** Of eight characters at most, and nobody else's. */
function labName(lane: number, family: IpFamily): string {
  return `scen${'abcdefgh'[lane]}${family.slice(-1)}`;
}
