import type { Random } from '@switchyard/core';
import { isOnlyLooking } from './run-scenario.ts';
import type { ConformanceCase, ScenarioCase } from '../model/case.ts';

export type Unit =
  | { readonly kind: 'single'; readonly settings: string; readonly cases: readonly [ConformanceCase] }
  /** Written to the cluster together and checked together. */
  | { readonly kind: 'batch'; readonly settings: string; readonly cases: readonly ScenarioCase[] };

/** Larger batches would make an unrealistic cluster, and failures that are hard to analyse. */
const largestBatch = 250;

/**
 * The order of a round: cases of a batch together, and units with the same proxy settings one after the other, because other settings
 * need a restart of the proxy. The order of settings, and of units within them, is random but equal for equal seeds.
 */
export function planUnits(cases: readonly ConformanceCase[], random: Random): readonly Unit[] {
  const units = [...Map.groupBy(cases, batchKey)].flatMap(([key, members]) =>
    key === undefined ? members.map(single) : batches(members as readonly ScenarioCase[]),
  );
  const bySettings = Map.groupBy(units, ({ settings }) => settings);
  return shuffled([...bySettings.values()], random).flatMap((group) => shuffled(group, random));
}

function batchKey(one: ConformanceCase): string | undefined {
  if (one.kind !== 'scenario' || one.batch === undefined || !isOnlyLooking(one.scenario)) return undefined;
  return `${one.batch} ${one.scenario.zone} ${settingsOf(one)}`;
}

function batches(members: readonly ScenarioCase[]): readonly Unit[] {
  const units: Unit[] = [];
  for (let start = 0; start < members.length; start += largestBatch) {
    const cases = members.slice(start, start + largestBatch);
    const [first] = cases;
    if (first !== undefined) units.push({ kind: 'batch', settings: settingsOf(first), cases });
  }
  return units;
}

function single(one: ConformanceCase): Unit {
  return { kind: 'single', settings: settingsOf(one), cases: [one] };
}

/** Sequences choose their settings by themselves. */
function settingsOf(one: ConformanceCase): string {
  return one.kind === 'scenario' ? JSON.stringify(one.scenario.agent) : '';
}

function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  const result = [...items];
  for (let index = result.length - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1));
    [result[index], result[other]] = [result[other] as T, result[index] as T];
  }
  return result;
}

/** Takes the next of the waiting units, if possible with these settings; undefined when there is none. */
export function takeUnit(waiting: Unit[], settings: string | undefined): Unit | undefined {
  const same = waiting.findIndex((unit) => unit.settings === settings);
  return waiting.splice(Math.max(0, same), 1)[0];
}

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
