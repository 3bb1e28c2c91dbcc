import { type Altitude, altitudes, type Scenario } from './scenario.ts';
import type { AltitudeResult, StepResult } from './verdict.ts';

/** One step whose result at an altitude is missing or not as expected. */
export interface Disagreement {
  /** `file.yaml:line`. */
  readonly where: string;
  readonly step: string;
  readonly expected: string;
  /** Observation of each altitude that ran; undefined: it did not check this step. */
  readonly observed: ReadonlyMap<Altitude, string | undefined>;
  /** First wrong altitude in their order; the fault is there, because the lower ones are right. */
  readonly firstWrong: Altitude;
  /** Why, in the words of `explain`, and of the altitude at fault. */
  readonly because: readonly string[];
}

/**
 * Returns every step in which an altitude disagrees with the expectation. Includes steps that `table` checked and a later
 * altitude neither checked nor skipped. Results may come in any order.
 */
export function compareAltitudes(scenario: Scenario, results: readonly AltitudeResult[]): readonly Disagreement[] {
  const ordered = altitudes.flatMap((altitude) => results.filter((result) => result.altitude === altitude));
  const lines = new Set(ordered.flatMap(({ steps }) => steps.map(({ line }) => line)));
  return [...lines].sort((a, b) => a - b).flatMap((line) => disagreementsAt(scenario, ordered, line));
}

/** All disagreements as text; empty when there is none. */
export function disagreementText(disagreements: readonly Disagreement[]): string {
  return disagreements.map(textOf).join('\n');
}

function disagreementsAt(
  scenario: Scenario,
  ordered: readonly AltitudeResult[],
  line: number,
): readonly Disagreement[] {
  const seen = ordered
    .filter(({ skipped }) => skipped.every((skip) => skip.line !== line))
    .map(({ altitude, steps }) => ({ altitude, result: steps.find((step) => step.line === line) }))
    .filter(({ altitude, result }) => result !== undefined || isDue(ordered, altitude, line));
  const wrong = seen.find(({ result }) => result?.isAsExpected !== true);
  const named = seen.find(({ result }) => result !== undefined)?.result;
  if (wrong === undefined || named === undefined) return [];
  return [
    {
      where: `${scenario.id}.yaml:${line} (${scenario.ipFamily})`,
      step: named.step,
      expected: named.expected,
      observed: new Map(seen.map(({ altitude, result }) => [altitude, result?.observed])),
      firstWrong: wrong.altitude,
      because: reasons(ordered, wrong.result, line),
    },
  ];
}

/** Other altitudes must check every step that the table checks. The table ignores restarts. */
function isDue(ordered: readonly AltitudeResult[], altitude: Altitude, line: number): boolean {
  const table = ordered.find((result) => result.altitude === 'table');
  return altitude !== 'table' && table?.steps.some((step) => step.line === line) === true;
}

function reasons(ordered: readonly AltitudeResult[], wrong: StepResult | undefined, line: number): readonly string[] {
  const explained = ordered
    .filter(({ altitude }) => altitude === 'table')
    .flatMap(({ steps }) => steps.find((step) => step.line === line)?.because ?? []);
  return [...explained, ...(wrong?.because ?? []).filter((text) => !explained.includes(text))];
}

function textOf(one: Disagreement): string {
  const seen = [...one.observed].map(
    ([altitude, observed]) => `  ${`${altitude}:`.padEnd(9)} ${observed ?? 'did not look'}`,
  );
  return [
    `${one.where}: ${one.step}`,
    `  first wrong altitude: ${one.firstWrong}`,
    `  expected: ${one.expected}`,
    ...seen,
    ...one.because.map((text) => `  because ${text}`),
  ].join('\n');
}
