import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'vitest';
import { runProgram } from '../debian/run-program.ts';
import { root } from '../workspace.ts';

// `nx affected` follows the dependencies in package.json, and inputs outside of a package from its targets.

const signal = AbortSignal.timeout(60_000);

async function affectedBy(file: string): Promise<readonly string[]> {
  const args = ['show', 'projects', '--affected', `--files=${file}`, '--withTarget=test', '--json'];
  const env = { NX_ISOLATE_PLUGINS: 'false', NX_DAEMON: 'false' };
  const { stdout } = await runProgram(join(root, 'node_modules/.bin/nx'), args, { cwd: root, env, signal });
  return (JSON.parse(stdout) as readonly string[]).toSorted();
}

/** Runs the agent or the LB controller, in tests or as its work. */
const proof = ['conformance', 'e2e', 'example-own-scenario', 'rollout'];

// Each row: a file; the projects whose tests a change of it runs, besides tools.
const rows: readonly (readonly [string, readonly string[]])[] = [
  ['examples/node-endpoints/src/main.ts', ['example-node-endpoints']],
  ['e2e/src/main.ts', ['e2e']],
  ['apps/node-agent/src/main.ts', ['node-agent', 'example-backend-json-file', ...proof]],
  ['apps/kind-lb-controller/src/main.ts', ['kind-lb-controller', ...proof]],
  [
    'packages/backend-iptables/src/index.ts',
    ['backend-iptables', 'node-agent', 'example-backend-json-file', 'scenarios', ...proof],
  ],
  ['docs/operate/health-check-profiles.md', ['kind-lb-controller', ...proof]],
  ['docs/build-on/library.md', ['e2e']],
  ['deploy/helm/switchyard/values.yaml', ['node-agent', 'example-backend-json-file', ...proof]],
];

for (const [file, projects] of rows) {
  test(`a change of ${file} runs the tests of ${projects.join(', ')}`, { timeout: 60_000 }, async () => {
    assert.deepEqual(await affectedBy(file), [...projects, 'tools'].toSorted());
  });
}
