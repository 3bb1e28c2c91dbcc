import { describe, expect, test } from 'vitest';
import { allScenarios } from './all-scenarios.ts';
import { runOnTable } from './run-on-table.ts';

describe('altitude 1: the forwarding table does what every scenario says', () => {
  test.each(
    allScenarios().map((scenario) => ({ title: `${scenario.id} ${scenario.ipFamily}: ${scenario.name}`, scenario })),
  )('$title', ({ scenario }) => {
    const { steps } = runOnTable(scenario);
    const wrong = steps.filter((step) => !step.isAsExpected);
    expect(wrong.map((step) => ({ ...step, where: `${scenario.id}.yaml:${step.line}` }))).toEqual([]);
    expect(steps.length).toBeGreaterThan(0);
  });
});
