import { mergeConfig } from 'vitest/config';
import { vitestConfig } from '../../vitest.config.base.ts';

const faults = 'test/privileged/faults/**';

// A project's list of files is added to the shared one, not put in its place; so the shared one is empty.
const base = vitestConfig('privileged');
const shared = { ...base, test: { ...base.test, include: [] } };

/** The tests of faults wait most of the time, each in a lab of its own: four files at once, after all others. */
export default mergeConfig(shared, {
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'agent',
          include: ['test/privileged/**/*.test.ts'],
          exclude: [faults],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'faults',
          include: [`${faults}/*.test.ts`],
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
