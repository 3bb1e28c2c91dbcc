import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { vitestConfig } from '../../vitest.config.base.ts';

const base: ViteUserConfig = vitestConfig('privileged');

/** Everything runs over both transports: tests ask `inject('transport')`, by way of support.ts. */
const projects = (['netlink', 'cli'] as const).map((transport) => ({
  ...base,
  test: {
    ...base.test,
    name: transport,
    provide: { transport },
    // These are about netlink alone.
    exclude: transport === 'cli' ? ['test/privileged/netlink-*.test.ts'] : [],
  },
}));

export default defineConfig({ ...base, test: { ...base.test, projects } });
