import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { allCells, isGlobMatch } from '../../src/session.ts';
import { expandMatrix, readMatrix } from '../../src/matrix.ts';
import { parseOptions } from '../../src/options.ts';
import { checkout } from '../scripted/scripted-machine.ts';

interface WorkflowStep {
  readonly id?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly if?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly needs?: string | readonly string[];
  readonly outputs?: Readonly<Record<string, string>>;
  readonly strategy?: { readonly matrix: Readonly<Record<string, string>>; readonly 'fail-fast': boolean };
  readonly 'timeout-minutes': number;
  readonly steps: readonly WorkflowStep[];
}

const text = readFileSync(`${checkout}/.github/workflows/e2e.yaml`, 'utf8');
const document = parseDocument(text);
const workflow = document.toJS() as {
  readonly env: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
  readonly permissions: Readonly<Record<string, string>>;
};
const jobs = Object.entries(workflow.jobs);
const matrix = readMatrix('m', readFileSync(`${checkout}/e2e/matrix.json`, 'utf8'));
const cells = allCells(expandMatrix(matrix));

/** All jobs that must end before this one. */
function needs(name: string): readonly string[] {
  const direct = [workflow.jobs[name]?.needs ?? []].flat();
  return direct.flatMap((one) => [one, ...needs(one)]);
}

test('parses, and may only read', () => {
  expect(document.errors).toEqual([]);
  expect(workflow.permissions).toEqual({ contents: 'read' });
});

describe.each(jobs)('job %s', (name, job) => {
  test('has a limit, and needs jobs that there are', () => {
    expect(job['timeout-minutes']).toBeGreaterThan(0);
    for (const one of needs(name)) expect(workflow.jobs).toHaveProperty(one);
  });

  test('refers to outputs of jobs that it needs, and these to outputs of their steps', () => {
    for (const [, other = '', output = ''] of JSON.stringify(job).matchAll(/needs\.(\w+)\.outputs\.(\w+)/g)) {
      expect(needs(name)).toContain(other);
      const [, step = '', key = ''] =
        /^\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}$/.exec(workflow.jobs[other]?.outputs?.[output] ?? '') ?? [];
      const source = workflow.jobs[other]?.steps.find(({ id }) => id === step);
      expect(source?.run).toContain(`echo "${key}=`);
      expect(source?.run).toContain('>>"$GITHUB_OUTPUT"');
    }
  });

  test('has a matrix that is read from JSON, uses it, and does not stop for one failure', () => {
    for (const [key, value] of Object.entries(job.strategy?.matrix ?? {})) {
      expect(value).toMatch(/^\$\{\{ fromJSON\(needs\.\w+\.outputs\.\w+\) \}\}$/);
      expect(JSON.stringify(job.steps)).toContain(`\${{ matrix.${key} }}`);
      expect(job.strategy?.['fail-fast']).toBe(false);
    }
    for (const [, key = ''] of JSON.stringify(job).matchAll(/\$\{\{ matrix\.(\w+) \}\}/g)) {
      expect(job.strategy?.matrix).toHaveProperty(key);
    }
  });

  test('always leaves its results, and describes the machine when it failed', () => {
    if (!job.steps.some(({ run }) => run?.includes('--results') === true)) return;
    const [, folder = ''] =
      /--results (\S+)/.exec(JSON.stringify(job.steps).replaceAll('\\n', ' ').replaceAll('"', ' ')) ?? [];
    const upload = job.steps.find(({ uses }) => uses?.startsWith('actions/upload-artifact@') === true);
    expect(upload).toMatchObject({ if: 'always()', with: { path: folder } });
    expect(folder.startsWith('.'), 'hidden files are not uploaded').toBe(false);
    expect(job.steps.some((step) => step.if === 'failure()' && step.run !== undefined)).toBe(true);
  });
});

const runs = jobs.flatMap(([, { steps }]) => steps.flatMap(({ run = '' }) => run.split('\n'))).filter(Boolean);

test('every command of the workflow exists', () => {
  const dev = readFileSync(`${checkout}/dev`, 'utf8');
  const calls = runs.flatMap((line) => [...line.matchAll(/\.\/dev (\w+)([^|&>]*)/g)]);
  const programs = runs.flatMap((line) => [...line.matchAll(/node --conditions=@switchyard\/source (\S+)([^|&>;]*)/g)]);
  expect(calls.length).toBeGreaterThan(5);
  expect(programs.length).toBeGreaterThan(1);
  for (const [, command] of calls) expect(dev).toContain(`\n  ${command})\n`);
  for (const [, program] of programs) expect(existsSync(`${checkout}/${program}`), program).toBe(true);
  const ours = [...calls.filter(([, command]) => command === 'e2e'), ...programs].map(([, , rest = '']) => rest);
  expect(ours.length).toBeGreaterThan(2);
  for (const rest of ours) {
    const words = rest
      .replaceAll(/\$\{\{[^}]*\}\}/g, 'cell')
      .replaceAll('"', '')
      .trim()
      .split(/\s+/);
    expect(() => parseOptions(words), rest).not.toThrow();
  }
});

test('every image of ./dev image that cells need is built', () => {
  for (const backend of matrix.backends) expect(runs).toContain(`./dev image --backend ${backend}`);
  for (const name of ['load-balancer', 'kind-lb-controller', 'conformance'])
    expect(runs).toContain(`./dev image ${name}`);
});

test('kind is the release that the node images were made for, by its checksum', () => {
  expect(workflow.env['KIND_VERSION']).toBe(matrix.kind);
  expect(workflow.env['KIND_SHA256']).toMatch(/^[0-9a-f]{64}$/);
  expect(runs).toContain('echo "$KIND_SHA256  kind" | sha256sum --check');
});

test('the cells of a pull request are one per backend, with the newest Kubernetes', () => {
  const [, glob = ''] = /'pull_request' && '([^']+)'/.exec(workflow.env['CELLS'] ?? '') ?? [];
  const chosen = cells.filter(({ id }) => isGlobMatch(glob, id));
  expect(chosen.map((cell) => cell.kind === 'kind' && cell.backend)).toEqual(matrix.backends);
  for (const cell of chosen) expect(cell).toMatchObject({ kubernetes: matrix.kubernetes.at(-1)?.version });
});
