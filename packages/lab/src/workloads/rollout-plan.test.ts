import { expect, test } from 'vitest';
import { planRollout, type RolloutCounts, rolloutLimits } from './deployment-plan.ts';

test.each([
  { surge: '25%', unavailable: '25%', replicas: 1, expected: [1, 0] },
  { surge: '25%', unavailable: '25%', replicas: 2, expected: [1, 0] },
  { surge: '25%', unavailable: '25%', replicas: 4, expected: [1, 1] },
  { surge: '25%', unavailable: '25%', replicas: 5, expected: [2, 1] },
  { surge: '50%', unavailable: '0%', replicas: 3, expected: [2, 0] },
  { surge: 0, unavailable: 0, replicas: 3, expected: [0, 1] },
  { surge: '0%', unavailable: '10%', replicas: 3, expected: [0, 1] },
  { surge: 2, unavailable: 3, replicas: 10, expected: [2, 3] },
  { surge: '100%', unavailable: '100%', replicas: 0, expected: [0, 1] },
])(
  'surge $surge, unavailable $unavailable of $replicas replicas is $expected',
  ({ surge, unavailable, replicas, expected }) => {
    const strategy = {
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: surge, maxUnavailable: unavailable },
    } as const;
    const limits = rolloutLimits(strategy, replicas);
    expect([limits.surge, limits.unavailable]).toEqual(expected);
  },
);

test('a limit that is neither a number nor a percentage is refused', () => {
  expect(() => rolloutLimits({ rollingUpdate: { maxSurge: 'many' } }, 1)).toThrow(
    'not a number of pods or a percentage',
  );
});

const quiet: RolloutCounts = { replicas: 4, newPods: 4, newAvailable: 4, oldPods: 0, oldAvailable: 0, oldRunning: 0 };
const none = { create: 0, deleteNew: 0, deleteOld: 0 };

test.each<{
  what: string;
  counts: Partial<RolloutCounts>;
  expected: Partial<typeof none>;
  surge?: number;
  unavailable?: number;
}>([
  { what: 'nothing to do', counts: {}, expected: {} },
  { what: 'scale up', counts: { replicas: 6 }, expected: { create: 2 } },
  { what: 'scale down', counts: { replicas: 1 }, expected: { deleteNew: 3 } },
  { what: 'first rollout', counts: { newPods: 0, newAvailable: 0 }, expected: { create: 4 } },
  {
    what: 'a rollout begins with the surge',
    counts: { newPods: 0, newAvailable: 0, oldPods: 4, oldAvailable: 4 },
    expected: { create: 1 },
  },
  {
    what: 'without surge it begins with a removal',
    counts: { newPods: 0, newAvailable: 0, oldPods: 4, oldAvailable: 4 },
    surge: 0,
    expected: { deleteOld: 1 },
  },
  {
    what: 'while the new pod is not available, only what may be unavailable goes',
    counts: { newPods: 1, newAvailable: 0, oldPods: 4, oldAvailable: 4 },
    expected: { deleteOld: 1 },
  },
  {
    what: 'nothing may be unavailable: wait',
    counts: { newPods: 1, newAvailable: 0, oldPods: 4, oldAvailable: 4 },
    unavailable: 0,
    expected: {},
  },
  {
    what: 'the new pod is available: an old one goes',
    counts: { newPods: 1, newAvailable: 1, oldPods: 4, oldAvailable: 4 },
    unavailable: 0,
    expected: { deleteOld: 1 },
  },
  {
    what: 'an old pod left: the next new one comes',
    counts: { newPods: 1, newAvailable: 1, oldPods: 3, oldAvailable: 3 },
    unavailable: 0,
    expected: { create: 1 },
  },
  {
    what: 'unavailable old pods go first and do not cost availability',
    counts: { newPods: 1, newAvailable: 1, oldPods: 4, oldAvailable: 2 },
    expected: { deleteOld: 2 },
  },
  {
    what: 'all new pods are available: the rest goes',
    counts: { oldPods: 1, oldAvailable: 1 },
    expected: { deleteOld: 1 },
  },
  {
    what: 'scaled to 0 during a rollout',
    counts: { replicas: 0, newPods: 0, newAvailable: 0, oldPods: 3, oldAvailable: 3 },
    expected: { deleteOld: 3 },
  },
])('$what', ({ counts, expected, surge = 1, unavailable = 1 }) => {
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: surge, maxUnavailable: unavailable } } as const;
  expect(planRollout({ ...quiet, ...counts }, strategy)).toEqual({ ...none, ...expected });
});

test.each<{ what: string; counts: Partial<RolloutCounts>; expected: Partial<typeof none> }>([
  {
    what: 'removes all old pods first',
    counts: { newPods: 0, oldPods: 4, oldAvailable: 4, oldRunning: 4 },
    expected: { deleteOld: 4 },
  },
  { what: 'waits for their processes to end', counts: { newPods: 0, oldRunning: 1 }, expected: {} },
  { what: 'then makes all new ones', counts: { newPods: 0 }, expected: { create: 4 } },
])('Recreate $what', ({ counts, expected }) => {
  expect(planRollout({ ...quiet, ...counts }, { type: 'Recreate' })).toEqual({ ...none, ...expected });
});
