import { expect, test } from 'vitest';
import { scenarioCases } from '../cases/scenario-cases.ts';
import type { TestEnvironment } from '../model/test-environment.ts';
import type { Ability, ScenarioCase } from '../model/case.ts';
import { fitToEnvironment } from './run-round.ts';

const cases = scenarioCases({ dataplane: 'nftables' });

function named(id: string): ScenarioCase {
  const one = cases.find((candidate) => candidate.id === id);
  if (one === undefined) throw new Error(`no case ${id}`);
  return one;
}

function environment(parts: {
  readonly can?: readonly Ability[];
  readonly step?: TestEnvironment['stepObstacle'];
  readonly whole?: string;
}): TestEnvironment {
  const { can = [], step = () => undefined, whole } = parts;
  // The methods that fitting calls.
  return {
    target: 'cluster',
    ipFamilies: ['IPv4'],
    can: new Set(can),
    stepObstacle: step,
    obstacle: () => whole,
  } as unknown as TestEnvironment;
}

const restart = named('scenario/restart/ipv4');
const noRestart: TestEnvironment['stepObstacle'] = (_, { kind }) =>
  kind === 'restartAgent' ? 'no restarts here' : undefined;

test('a case that an environment can do is as it was', () => {
  const fit = fitToEnvironment(restart, environment({ can: ['restartProxy', 'sendFromOutside'] }));
  expect(fit).toEqual({ status: 'fits', case: restart, skippedSteps: [] });
});

test('an environment that lacks an ability skips the case with its name', () => {
  expect(fitToEnvironment(restart, environment({ can: ['sendFromOutside'] }))).toEqual({
    status: 'skipped',
    because: 'needs what this cluster cannot: restartProxy',
  });
});

test.each(['scenario/restart/ipv6', 'scenario/dual-stack-endpoints/dual-ipv4', 'scenario/masquerade-all/ipv6'])(
  '%s on a cluster with IPv4 alone is skipped for that before all else',
  (id) => {
    expect(fitToEnvironment(named(id), environment({ can: [], whole: 'anything else' }))).toEqual({
      status: 'skipped',
      because: 'the Services of this cluster have only IPv4',
    });
  },
);

test('a step that an environment cannot do is left out with its reason, and the case needs no more what only it needed', () => {
  const fit = fitToEnvironment(restart, environment({ can: ['sendFromOutside'], step: noRestart }));
  if (fit.status !== 'fits' || fit.case.kind !== 'scenario') throw new Error('it must fit');
  expect(fit.case.needs).not.toContain('restartProxy');
  expect(fit.case.scenario.steps.some(({ kind }) => kind === 'restartAgent')).toBe(false);
  expect(new Set(fit.skippedSteps.map(({ because }) => because))).toEqual(new Set(['no restarts here']));
  expect(fit.skippedSteps[0]?.id).toMatch(/^line \d+$/);
});

test('a case with nothing left to look at is skipped with the first reason', () => {
  const nothing = environment({
    can: [],
    step: (_, { kind }) => (kind === 'flow' || kind === 'restartAgent' ? `no ${kind}` : undefined),
  });
  expect(fitToEnvironment(restart, nothing)).toEqual({ status: 'skipped', because: 'no flow' });
});

test('what is against the whole case comes with its reason', () => {
  const able: readonly Ability[] = ['restartProxy', 'sendFromOutside'];
  expect(fitToEnvironment(restart, environment({ can: able, whole: 'no zone' }))).toEqual({
    status: 'skipped',
    because: 'no zone',
  });
});
