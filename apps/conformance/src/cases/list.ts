import {
  type DataplaneName,
  expectationText,
  flowText,
  healthStepText,
  healthText,
  nothingChanges,
  restartText,
  type ScenarioStep,
} from '@switchyard/scenarios';
import type { CaseInfo, ConformanceCase } from '../model/case.ts';
import { checkIdOf } from './scenario-cases.ts';

export interface ListOptions {
  readonly format: 'text' | 'json';
  /** Dataplane whose cases are listed. */
  readonly dataplane: DataplaneName;
}

/** What `list --json` prints. Readers refuse another schema. */
export interface CaseList {
  readonly schema: 'switchyard-conformance-cases/1';
  readonly dataplane: DataplaneName;
  readonly cases: readonly ListedCase[];
}

/** One case, without running it. */
export interface ListedCase extends Omit<CaseInfo, 'notFor'> {
  /** Reason why it is skipped with this dataplane; absent if it is not. */
  readonly notFor?: string;
  /** Checks of a scenario. Empty for a sequence, whose checks are only known when it runs. */
  readonly checks: readonly { readonly id: string; readonly what: string; readonly expected: string }[];
}

/** Cases as text, one line each and a line with their number, or as JSON with all their properties. Ends with a newline. */
export function listCases(cases: readonly ConformanceCase[], { format, dataplane }: ListOptions): string {
  if (format === 'text') return textOf(cases, dataplane);
  const list: CaseList = { schema: 'switchyard-conformance-cases/1', dataplane, cases: cases.map(listedCase) };
  return `${JSON.stringify(list, undefined, 2)}\n`;
}

function textOf(cases: readonly ConformanceCase[], dataplane: DataplaneName): string {
  const width = Math.max(0, ...cases.map(({ id }) => id.length));
  const lines = cases.map(
    ({ id, title, notFor }) => `${id.padEnd(width)}  ${title}${notFor === undefined ? '' : ` (skipped: ${notFor})`}`,
  );
  const skipped = cases.filter(({ notFor }) => notFor !== undefined).length;
  const count = `${cases.length} ${cases.length === 1 ? 'case' : 'cases'}`;
  const end = skipped === 0 ? count : `${count}, of which ${skipped} not for ${dataplane}`;
  return `${[...lines, end].join('\n')}\n`;
}

function listedCase(one: ConformanceCase): ListedCase {
  const { id, title, why, tags, families, needs, notFor } = one;
  const checks = one.kind === 'sequence' ? [] : one.scenario.steps.flatMap((step) => listedCheck(one.scenario, step));
  return { id, title, why, tags, families, needs, ...(notFor === undefined ? {} : { notFor }), checks };
}

function listedCheck(scenario: Parameters<typeof checkIdOf>[0], step: ScenarioStep): ListedCase['checks'] {
  const id = checkIdOf(scenario, step);
  if (id === undefined) return [];
  if (step.kind === 'flow') return [{ id, what: flowText(step.flow), expected: expectationText(step.flow.expect) }];
  if (step.kind === 'healthCheck') return [{ id, what: healthStepText(step.check), expected: healthText(step.check) }];
  return [{ id, what: restartText, expected: nothingChanges }];
}
