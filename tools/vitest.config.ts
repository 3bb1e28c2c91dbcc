import { vitestConfig } from '../vitest.config.base.ts';

const base = vitestConfig();

/** Each tool has its tests beside it. Those of the API pages read what `npm run typecheck` makes. */
export default { ...base, test: { ...base.test, include: ['*/*.test.ts'] } };
