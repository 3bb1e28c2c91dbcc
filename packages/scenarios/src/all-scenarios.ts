import type { DataplaneTraits } from '@switchyard/core';
import { readdirSync, readFileSync } from 'node:fs';
import { referenceDataplane } from './dataplanes.ts';
import { parseScenario, type ParsedScenario, scenariosOf } from './load-scenario.ts';
import type { Scenario } from './scenario.ts';

const folder = new URL('../scenarios/', import.meta.url);

// The files are part of the package and do not change while a program runs.
let files: readonly ParsedScenario[] | undefined;
const scenariosByDataplane = new WeakMap<DataplaneTraits, readonly Scenario[]>();

/**
 * Every scenario file of this package, in every family it names, sorted by id, with what a dataplane must do. Files are read once;
 * the same traits return the same scenarios.
 */
export function allScenarios(dataplane: DataplaneTraits = referenceDataplane): readonly Scenario[] {
  files ??= readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .map((file) => parseScenario(file.slice(0, -'.yaml'.length), readFileSync(new URL(file, folder), 'utf8')));
  const all = scenariosByDataplane.get(dataplane) ?? files.flatMap((file) => scenariosOf(file, dataplane));
  scenariosByDataplane.set(dataplane, all);
  return all;
}
