import { vitestConfig } from '../../vitest.config.base.ts';

export default vitestConfig('quiet');
