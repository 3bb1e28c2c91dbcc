import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { images } from '../images/definitions.ts';
import { root } from '../workspace.ts';

interface Step {
  readonly id?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly needs?: string | readonly string[];
  readonly permissions?: Readonly<Record<string, string>>;
  readonly outputs?: Readonly<Record<string, string>>;
  readonly strategy?: { readonly matrix: Readonly<Record<string, unknown>> };
  readonly 'timeout-minutes'?: number;
  readonly steps: readonly Step[];
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const paths = globSync('.github/workflows/*.yaml', { cwd: root }).toSorted();
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const workflowOf = (path: string): Workflow => parseDocument(read(path)).toJS() as Workflow;
const scriptsOf = ({ steps }: Job): readonly string[] => steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
const allJobs = paths.flatMap((path) =>
  Object.entries(workflowOf(path).jobs).map(([name, job]) => ({
    path: basename(path),
    name,
    job,
    all: workflowOf(path).jobs,
  })),
);
const scripts = allJobs.flatMap(({ job }) => scriptsOf(job));

test('every workflow parses, and may only read unless a job says otherwise', () => {
  expect(paths.map((path) => basename(path))).toEqual([
    'conformance.yaml',
    'e2e.yaml',
    'pull-request.yaml',
    'release.yaml',
  ]);
  for (const path of paths) {
    expect(parseDocument(read(path)).errors, path).toEqual([]);
    expect(workflowOf(path).permissions, path).toEqual({ contents: 'read' });
  }
});

describe.each(allJobs)('$path, job $name', ({ job, all }) => {
  test('has a limit, needs jobs that exist, and reads outputs that these have', () => {
    expect(job['timeout-minutes']).toBeGreaterThan(0);
    const needs = [job.needs ?? []].flat();
    for (const one of needs) expect(all).toHaveProperty(one);
    for (const [, other = '', output = ''] of JSON.stringify(job).matchAll(/needs\.([\w-]+)\.outputs\.(\w+)/g)) {
      expect(needs).toContain(other);
      expect(all[other]?.outputs).toHaveProperty(output);
    }
  });

  test('reads outputs of steps that write them, and values of its matrix', () => {
    const text = JSON.stringify(job);
    for (const [, id, output = ''] of text.matchAll(/steps\.([\w-]+)\.outputs\.(\w+)/g)) {
      const step = job.steps.find((one) => one.id === id);
      expect(step?.run, `${id}.${output}`).toContain(`echo "${output}=`);
    }
    const { include = [], ...lists } = job.strategy?.matrix ?? {};
    for (const [, key = ''] of text.matchAll(/\bmatrix\.(\w+)/g)) {
      const rows = key in lists ? [lists] : (include as readonly object[]);
      expect(rows.length).toBeGreaterThan(0);
      for (const row of rows) expect(row).toHaveProperty(key);
    }
  });

  test('uses actions by a major version, and scripts that a shell can read', () => {
    for (const { uses = 'a/b@v1' } of job.steps) {
      if (uses.startsWith('./')) expect(existsSync(join(root, uses, 'action.yml')), uses).toBe(true);
      else expect(uses).toMatch(/^[\w-]+\/[\w-]+@v\d+$/);
    }
    for (const script of scriptsOf(job)) {
      const { status, stderr } = spawnSync('bash', ['-n'], {
        input: script.replaceAll(/\$\{\{.*?\}\}/g, 'x'),
        encoding: 'utf8',
      });
      expect({ status, stderr }, script).toEqual({ status: 0, stderr: '' });
    }
  });
});

test('every command of ./dev, script of npm and program that a workflow runs exists', () => {
  const dev = read('dev');
  const matches = (pattern: RegExp): readonly string[] =>
    scripts.flatMap((script) => [...script.matchAll(pattern)].map(([, name = '']) => name));
  const commands = matches(/\.\/dev (\S+)/g);
  expect(new Set(commands)).toEqual(new Set(['build', 'e2e', 'image', 'pack', 'setup', 'test']));
  for (const command of commands) expect(dev.match(new RegExp(`^  ${command}\\)`, 'm')), command).not.toBeNull();
  const npmScripts = (JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> })
    .scripts;
  const used = matches(/npm run ([\w:-]+)/g);
  expect(used.length).toBeGreaterThan(2);
  for (const name of used) expect(npmScripts).toHaveProperty([name]);
  const programs = matches(/node --conditions=@switchyard\/source (\S+)/g);
  for (const program of programs) expect(existsSync(join(root, program)), program).toBe(true);
});

describe('a release', () => {
  const release = workflowOf('.github/workflows/release.yaml');
  const needsOf = (name: string): readonly string[] => {
    const direct = [release.jobs[name]?.needs ?? []].flat();
    return [...direct, ...direct.flatMap(needsOf)];
  };

  test('begins with a tag or by hand', () => {
    expect(release.on).toMatchObject({
      push: { tags: ['v[0-9]+.[0-9]+.[0-9]+*'] },
      workflow_dispatch: { inputs: { tag: { required: true } } },
    });
  });

  test('builds and attests every image', () => {
    for (const name of ['images', 'attest']) {
      expect(release.jobs[name]?.strategy?.matrix['image'], name).toEqual(Object.keys(images));
    }
    const usage = read('tools/images/image.ts');
    for (const [flag] of scripts.flatMap((script) => [...script.matchAll(/(?<=dev image .*)--[\w-]+/g)])) {
      expect(usage).toContain(`  ${flag} `);
    }
  });

  test('publishes nothing before the tests of the tag have passed', () => {
    const writers = Object.entries(release.jobs).filter(([, { permissions }]) =>
      Object.values(permissions ?? {}).includes('write'),
    );
    expect(writers.map(([name]) => name)).toEqual(['images', 'attest', 'npm', 'release']);
    for (const [name] of writers) expect(needsOf(name)).toContain('test');
    expect(scriptsOf(release.jobs['test'] as Job).join('\n')).toMatch(/\.\/dev test$/);
  });

  test('takes every checkout from the tag, and no text of a caller into a script', () => {
    const steps = Object.values(release.jobs).flatMap((job) => job.steps);
    for (const step of steps.filter(({ uses }) => uses?.startsWith('actions/checkout@') === true)) {
      expect(step.with?.['ref']).toBe('refs/tags/${{ env.TAG }}');
    }
    for (const { run = '' } of steps) expect(run).not.toContain('${{');
  });

  test('has the notes of its version alone', () => {
    const [, program = ''] = /awk -v version="\$VERSION" '([^']+)'/.exec(scripts.join('\n')) ?? [];
    const changelog =
      '## 0.2.0 (2026-12-01)\n\n### Features\n\n- b\n\n# 0.1.0 (2026-11-26)\n\n- a\n\n## 0.0.1\n\n- z\n';
    const notes = (version: string): string =>
      spawnSync('awk', ['-v', `version=${version}`, program], { input: changelog, encoding: 'utf8' }).stdout;
    expect(notes('0.1.0')).toBe('# 0.1.0 (2026-11-26)\n\n- a\n\n');
    expect(notes('0.2.0')).toContain('### Features\n\n- b\n');
    expect(notes('9.0.0')).toBe('');
  });
});
