import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { vitestConfig } from '../../vitest.config.base.ts';

const config: ViteUserConfig = defineConfig(vitestConfig('privileged'));

export default config;
