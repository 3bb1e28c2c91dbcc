import { fileURLToPath } from 'node:url';
import { defineConfig, type ViteUserConfig } from 'vitest/config';

/**
 * Settings every project shares. `unit` runs anywhere and is kept from programming the machine; `privileged` needs root,
 * programs only network namespaces it made itself, and runs one file at a time.
 */
export function vitestConfig(kind: 'unit' | 'privileged' = 'unit'): ViteUserConfig {
  return defineConfig({
    ssr: { resolve: { conditions: ['@switchyard/source', 'module', 'node', 'development|production'] } },
    test: {
      environment: 'node',
      include: kind === 'unit' ? ['src/**/*.test.ts', 'test/unit/**/*.test.ts'] : ['test/privileged/**/*.test.ts'],
      benchmark: { include: ['src/**/*.bench.ts', 'bench/**/*.bench.ts'] },
      pool: kind === 'unit' ? 'threads' : 'forks',
      fileParallelism: kind === 'unit',
      testTimeout: kind === 'unit' ? 10_000 : 120_000,
      // Before some privileged tests packages are fetched, from a mirror that may be slow.
      hookTimeout: kind === 'unit' ? 10_000 : 600_000,
      setupFiles: ['./vitest.setup.ts', ...(kind === 'unit' ? ['./vitest.setup.unit.ts'] : [])].map((file) =>
        fileURLToPath(new URL(file, import.meta.url)),
      ),
      reporters: ['default', 'json'],
      outputFile: { json: `.test-results/${kind}.json` },
      allowOnly: false,
    },
  });
}
export default vitestConfig();
