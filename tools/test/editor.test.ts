import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { expect, test } from 'vitest';
import { root, workspaces } from '../workspace.ts';

/** Reads JSON with comments on lines of their own. */
function read(name: string): unknown {
  return JSON.parse(readFileSync(join(root, '.vscode', name), 'utf8').replaceAll(/^ *\/\/.*$/gm, ''));
}

const settings = read('settings.json') as Readonly<Record<string, string>>;
const { configurations, inputs } = read('launch.json') as {
  readonly configurations: readonly Readonly<Record<string, string & readonly string[]>>[];
  readonly inputs: readonly { readonly id: string; readonly options?: readonly string[] }[];
};

test('the editor uses the TypeScript of the workspace, which is a package with a compiler', () => {
  const path = join(root, settings['js/ts.tsdk.path'] ?? '', 'package.json');
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ name: 'typescript', bin: { tsc: './bin/tsc' } });
});

test('the Vitest extension sees the configurations of unit tests alone', () => {
  const all = globSync('{apps,packages,tools,e2e,examples}/{*/,}vitest*.config.ts', { cwd: root });
  const seen = all.filter((path) => !matchesGlob(path, settings['vitest.configSearchPatternExclude'] ?? ''));
  expect(all.length).toBeGreaterThan(seen.length);
  expect(seen.filter((path) => !path.endsWith('/vitest.config.ts'))).toEqual([]);
  for (const { folder, targets } of workspaces()) {
    if (targets.includes('test')) expect(seen).toContain(`${folder}/vitest.config.ts`);
  }
});

test('the debugger starts files that exist, in every package', () => {
  const folders = workspaces().map(({ folder }) => folder);
  expect(inputs.find(({ id }) => id === 'package')?.options).toEqual([...folders, 'tools']);
  for (const { program = '', runtimeExecutable = '' } of configurations) {
    for (const path of [program, runtimeExecutable]) {
      expect(existsSync(path.replace('${workspaceFolder}', root)), path).toBe(true);
    }
  }
});

test("the agent in the debugger has the flags of CONTRIBUTING's agent in a lab", () => {
  const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
  const [, command = ''] = /apps\/node-agent\/src\/main\.ts \\\n([^`]*?[^\\])\n/.exec(page) ?? [];
  const agent = configurations.find(({ name }) => name === 'Agent on node1 of a lab');
  expect(agent?.['args']).toEqual(command.replaceAll('\\\n', ' ').trim().split(/\s+/));
});
