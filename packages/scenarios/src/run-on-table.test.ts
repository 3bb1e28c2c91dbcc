import { describe, expect, test } from 'vitest';
import { allScenarios } from './load-scenario.ts';
import { dataplanes } from './dataplanes.ts';
import { runOnTable } from './run-on-table.ts';

describe.each(dataplanes)('the table does what every scenario says ($name)', (dataplane) => {
  test.for(
    allScenarios(dataplane).map((scenario) => ({
      title: `${scenario.id} ${scenario.ipFamily}: ${scenario.name}`,
      scenario,
    })),
  )('$title', ({ scenario }, { skip }) => {
    skip(!scenario.runs.kinds.includes('table'), scenario.runs.because);
    const { steps } = runOnTable(scenario);
    const wrong = steps.filter((step) => !step.isAsExpected);
    expect(wrong.map((step) => ({ ...step, where: `${scenario.id}.yaml:${step.line}` }))).toEqual([]);
    expect(steps.length).toBeGreaterThan(0);
  });
});
