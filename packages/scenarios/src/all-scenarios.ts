import type { DataplaneTraits } from '@switchyard/core';
import { readdirSync, readFileSync } from 'node:fs';
import { referenceDataplane } from './dataplanes.ts';
import { loadScenario } from './load-scenario.ts';
import type { Scenario } from './scenario.ts';

const folder = new URL('../scenarios/', import.meta.url);

/** Every scenario file of this package, in every family it names, sorted by id, with what a dataplane must do. */
export function allScenarios(dataplane: DataplaneTraits = referenceDataplane): readonly Scenario[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .flatMap((file) =>
      loadScenario(file.slice(0, -'.yaml'.length), readFileSync(new URL(file, folder), 'utf8'), dataplane),
    );
}
