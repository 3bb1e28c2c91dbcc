import { fileURLToPath } from 'node:url';
import { defineConfig, type ViteUserConfig } from 'vitest/config';

// Tests start thousands of Node programs, most of them from TypeScript: compiling them anew is two thirds of such a start.
process.env['NODE_COMPILE_CACHE'] ??= fileURLToPath(new URL('node_modules/.cache/node-compile', import.meta.url));

/**
 * Settings of all projects. `unit` runs anywhere and is kept from programming the machine; `exhaustive` is the same for tests that repeat
 * every case in more ways than a developer waits for. `privileged` needs root and programs only network namespaces that it made itself,
 * one file at a time; other packages' tests may run beside it. `quiet` is the same for tests that count requests while pods are replaced:
 * nothing else may run on the machine. They wait most of the time, so two files run at once.
 */
export function vitestConfig(kind: 'unit' | 'exhaustive' | 'privileged' | 'quiet' = 'unit'): ViteUserConfig {
  const isUnit = kind === 'unit' || kind === 'exhaustive';
  return defineConfig({
    ssr: { resolve: { conditions: ['@switchyard/source', 'module', 'node', 'development|production'] } },
    test: {
      environment: 'node',
      include: [...(kind === 'unit' ? ['src/**/*.test.ts'] : []), `test/${kind}/**/*.test.ts`],
      benchmark: { include: ['src/**/*.bench.ts', 'bench/**/*.bench.ts'] },
      pool: isUnit ? 'threads' : 'forks',
      // One module graph for all files of a worker: half of the time of most packages' unit tests. Tests leave no global state behind.
      isolate: kind === 'quiet',
      maxWorkers: isUnit ? '100%' : kind === 'quiet' ? 2 : 1,
      // A test waits that long only if it fails. A slow machine beside other tests takes five times what a quick one does.
      testTimeout: isUnit ? 60_000 : 300_000,
      expect: { poll: { timeout: 50_000 } },
      // Before some privileged tests packages are fetched, from a mirror that may be slow.
      hookTimeout: isUnit ? 60_000 : 600_000,
      setupFiles: ['./vitest.setup.ts', ...(isUnit ? ['./vitest.setup.unit.ts'] : [])].map((file) =>
        fileURLToPath(new URL(file, import.meta.url)),
      ),
      reporters: ['default', 'json'],
      outputFile: { json: `.test-results/${kind}.json` },
      allowOnly: false,
    },
  });
}
export default vitestConfig();
