import { vitestConfig } from '../../vitest.config.base.ts';

const base = vitestConfig('privileged');

/** One file takes longer than all others together, so they run beside it. */
export default { ...base, test: { ...base.test, maxWorkers: 2 } };
