import { vitestConfig } from '../vitest.config.base.ts';

const base = vitestConfig();

/** Each tool has its tests beside it. */
export default { ...base, test: { ...base.test, include: ['*/*.test.ts'] } };
