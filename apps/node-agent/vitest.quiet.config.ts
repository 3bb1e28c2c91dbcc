import { mergeConfig } from 'vitest/config';
import { vitestConfig } from '../../vitest.config.base.ts';

const faults = 'test/quiet/faults/*.test.ts';

// A project's list of files is added to the shared one, not put in its place; so the shared one is empty.
const base = vitestConfig('quiet');
const shared = { ...base, test: { ...base.test, include: [] } };

/** The tests of faults do nothing but wait, each in a lab of its own: three files at once, after all others. */
export default mergeConfig(shared, {
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'agent',
          include: ['test/quiet/**/*.test.ts'],
          exclude: [faults],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'faults', include: [faults], maxWorkers: 3, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
