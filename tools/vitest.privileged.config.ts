import { vitestConfig } from '../vitest.config.base.ts';

const base = vitestConfig('privileged');

/** Needs what takes long to make or to fetch: compiled packages, npm's installations, packages of Debian. */
export default { ...base, test: { ...base.test, include: ['*/test/privileged/*.test.ts'], maxWorkers: 2 } };
