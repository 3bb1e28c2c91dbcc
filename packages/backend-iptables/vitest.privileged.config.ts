import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { vitestConfig } from '../../vitest.config.base.ts';

const base: ViteUserConfig = vitestConfig('privileged');

/** Everything runs over both variants of iptables: tests ask `inject('variant')`, by way of support.ts. */
const projects = (['nft', 'legacy'] as const).map((variant) => ({
  ...base,
  test: {
    ...base.test,
    name: variant,
    provide: { variant },
    // These are about one variant alone.
    exclude: [`test/privileged/${variant === 'nft' ? 'legacy' : 'nft'}-*.test.ts`],
  },
}));

export default defineConfig({ ...base, test: { ...base.test, projects } });
