import { UsageError } from '@switchyard/core';
import { dataplaneNamed, type ParsedScenario, scenariosOf } from '@switchyard/scenarios';
import { catalogue, isInCell } from '../cases/catalogue.ts';
import { scenarioCase } from '../cases/scenario-cases.ts';
import type { CatalogueOptions, ConformanceCase } from '../model/case.ts';
import { type Choice, chooseCases } from './choose-cases.ts';

/** Selection of cases, with scenarios of the user. */
export interface Selection extends Choice {
  readonly scenarios: readonly ParsedScenario[];
}

/**
 * The cases to run: those of the user's scenarios, then those of the catalogue that globs and tags choose. Without globs and tags the
 * user's scenarios run alone. One with the id of a case of the catalogue takes its place. Throws `ConfigError` for an address outside
 * the address plan, and `UsageError` if nothing is left to run.
 */
export function selectCases(options: CatalogueOptions, selection: Selection): readonly ConformanceCase[] {
  const { scenarios, globs, tags } = selection;
  if (scenarios.length === 0) return chooseCases(catalogue(options), selection);
  const dataplane = dataplaneNamed(options.dataplane);
  const own = scenarios.flatMap((one) => {
    const cases = scenariosOf(one, dataplane).map((scenario) => scenarioCase(scenario));
    const inCell = cases.filter(({ families }) => isInCell(families, options.cell));
    if (inCell.length > 0) return inCell;
    throw new UsageError(
      'conformance.scenario',
      `the scenario ${one.id} has no case for --ip-family ${options.cell}: it is for ${cases.map(({ families }) => families).join()}`,
    );
  });
  if (globs.length === 0 && tags.length === 0) return own;
  const ids = new Set(own.map(({ id }) => id));
  return [...own, ...chooseCases(catalogue(options), selection).filter(({ id }) => !ids.has(id))];
}
