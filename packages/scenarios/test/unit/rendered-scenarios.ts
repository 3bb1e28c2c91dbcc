import type { DataplaneTraits } from '@switchyard/core';
import { allScenarios, type Scenario } from '../../src/index.ts';

/**
 * Which scenarios of each file: that of its first IP family, or the others, which say the same in the other family's addresses.
 * `nx test` runs the repetitions of a scenario in the first family, `nx test-exhaustive` in the others.
 */
export type Families = 'first' | 'others' | 'all';

/** Scenarios that have a run on the rendering, in the order of their files. */
export function renderedScenarios(dataplane: DataplaneTraits, families: Families): readonly Scenario[] {
  const isFirst = (scenario: Scenario, index: number, all: readonly Scenario[]): boolean =>
    all[index - 1]?.id !== scenario.id;
  return allScenarios(dataplane)
    .filter(({ runs }) => runs.kinds.includes('rendering'))
    .filter((scenario, index, all) => families === 'all' || isFirst(scenario, index, all) === (families === 'first'));
}
