import { mergeConfig } from 'vitest/config';
import { vitestConfig } from '../../vitest.config.base.ts';

const faults = 'test/privileged/faults/**';

/** The tests of faults wait most of the time, each in a lab of its own: three files at once, after all others. */
export default mergeConfig(vitestConfig('privileged'), {
  test: {
    projects: [
      { extends: true, test: { name: 'agent', exclude: [faults], sequence: { groupOrder: 0 } } },
      {
        extends: true,
        test: {
          name: 'faults',
          include: [`${faults}/*.test.ts`],
          fileParallelism: true,
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
