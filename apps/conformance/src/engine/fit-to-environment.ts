import type { Scenario, ScenarioStep } from '@switchyard/scenarios';
import { checkIdOf } from '../cases/check-id.ts';
import { scenarioNeeds } from '../cases/scenario-cases.ts';
import type { TestEnvironment } from '../model/test-environment.ts';
import type { ConformanceCase, ScenarioCase } from '../model/case.ts';
import type { SkippedStep } from '../model/report-file.ts';

/** A case as an environment can run it. */
export type FittedCase =
  | { readonly status: 'fits'; readonly case: ConformanceCase; readonly skippedSteps: readonly SkippedStep[] }
  | { readonly status: 'skipped'; readonly because: string };

/** Returns the part of a case that an environment can run: all, all but some steps of its scenario, or nothing. */
export function fitToEnvironment(one: ConformanceCase, environment: TestEnvironment): FittedCase {
  if (one.notFor !== undefined) return { status: 'skipped', because: one.notFor };
  const fitted = one.kind === 'scenario' ? withoutObstacles(one, environment) : { case: one, skippedSteps: [] };
  const [first] = fitted.skippedSteps;
  if (first !== undefined && one.kind === 'scenario' && !looks(fitted.case as ScenarioCase)) {
    return { status: 'skipped', because: first.because };
  }
  const missing = fitted.case.needs.filter((ability) => !environment.can.has(ability));
  if (missing.length > 0) {
    return { status: 'skipped', because: `needs what this ${environment.target} cannot: ${missing.join(', ')}` };
  }
  const because = environment.obstacle(fitted.case);
  return because === undefined ? { status: 'fits', ...fitted } : { status: 'skipped', because };
}

interface Narrowed {
  readonly case: ConformanceCase;
  readonly skippedSteps: readonly SkippedStep[];
}

function withoutObstacles(one: ScenarioCase, environment: TestEnvironment): Narrowed {
  const { scenario } = one;
  const obstacles = new Map<ScenarioStep, string>();
  for (const step of scenario.steps) {
    const because = environment.stepObstacle(scenario, step);
    if (because !== undefined) obstacles.set(step, because);
  }
  if (obstacles.size === 0) return { case: one, skippedSteps: [] };
  const narrowed: Scenario = { ...scenario, steps: scenario.steps.filter((step) => !obstacles.has(step)) };
  const skippedSteps = [...obstacles].map(([step, because]) => ({ id: stepId(scenario, step), because }));
  return { case: { ...one, scenario: narrowed, needs: scenarioNeeds(narrowed) }, skippedSteps };
}

function looks({ scenario }: ScenarioCase): boolean {
  return scenario.steps.some((step) => checkIdOf(scenario, step) !== undefined);
}

function stepId(scenario: Scenario, step: ScenarioStep): string {
  return checkIdOf(scenario, step) ?? `line ${step.line}`;
}
