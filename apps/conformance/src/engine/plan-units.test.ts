import { describe, expect, test } from 'vitest';
import type { ScenarioCase } from '../model/case.ts';
import { scenarioCase } from '../testing/cases.ts';
import { planUnits, takeUnit, seededRandom } from './plan-units.ts';

function withAgent(id: string, masqueradeAll: boolean, more: Partial<ScenarioCase> = {}): ScenarioCase {
  const one = scenarioCase(id, more);
  return { ...one, scenario: { ...one.scenario, agent: { ...one.scenario.agent, masqueradeAll } } };
}

const ids = (units: ReturnType<typeof planUnits>): readonly (readonly string[])[] =>
  units.map(({ cases }) => cases.map(({ id }) => id));

describe('planUnits', () => {
  const many = Array.from({ length: 20 }, (_, index) => withAgent(`scenario/${index}/ipv4`, index % 2 === 0));

  test('the order is chance, and the same for the same seed', () => {
    const order = (seed: number): string => JSON.stringify(ids(planUnits(many, seededRandom(seed))));
    expect(order(1)).toBe(order(1));
    expect(order(1)).not.toBe(order(2));
  });

  test('units with the same settings follow each other: two settings are two starts', () => {
    const settings = planUnits(many, seededRandom(7)).map((unit) => unit.settings);
    const changes = settings.filter((one, index) => index > 0 && one !== settings[index - 1]);
    expect(changes).toHaveLength(1);
  });

  test('cases of a batch are one unit, those with other settings or zones another', () => {
    const batch = (id: string, isAll = false): ScenarioCase => withAgent(id, isAll, { batch: 'matrix' });
    const far = batch('matrix/far/ipv4');
    const zoned = { ...far, scenario: { ...far.scenario, zone: 'zone-c' } };
    const units = planUnits(
      [batch('matrix/a/ipv4'), batch('matrix/b/ipv4'), batch('matrix/c/ipv4', true), zoned],
      () => 0,
    );
    expect(
      ids(units)
        .map((one) => [...one].sort().join())
        .sort(),
    ).toEqual(['matrix/a/ipv4,matrix/b/ipv4', 'matrix/c/ipv4', 'matrix/far/ipv4']);
  });

  test('a case that changes something is no part of a batch', () => {
    const one = withAgent('matrix/a/ipv4', false, { batch: 'matrix' });
    const steps = [...one.scenario.steps, { kind: 'restartAgent', line: 99 } as const];
    const units = planUnits([{ ...one, scenario: { ...one.scenario, steps } }], () => 0);
    expect(units.map(({ kind }) => kind)).toEqual(['single']);
  });

  test('a batch has 250 cases at most', () => {
    const all = Array.from({ length: 600 }, (_, index) =>
      withAgent(`matrix/${index}/ipv4`, false, { batch: 'matrix' }),
    );
    const sizes = planUnits(all, seededRandom(1)).map(({ cases }) => cases.length);
    expect([...sizes].sort((a, b) => a - b)).toEqual([100, 250, 250]);
  });
});

test('an environment takes units with the settings it has, as long as there are any', () => {
  const units = planUnits([withAgent('a', true), withAgent('b', false), withAgent('c', true)], () => 0);
  const queue = [...units];
  const settings = withAgent('a', true).scenario.agent;
  const taken = [1, 2, 3, 4].map(() => takeUnit(queue, JSON.stringify(settings))?.cases[0].id);
  expect(taken.slice(0, 2).toSorted()).toEqual(['a', 'c']);
  expect(taken.slice(2)).toEqual(['b', undefined]);
});
