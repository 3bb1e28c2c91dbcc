import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { HostError, seconds } from '@switchyard/core';
import { clusterLabel } from '../cell.ts';
import { isSelected, upstreamImageOf } from '../matrix.ts';
import type { Findings, Step } from '../run/run-steps.ts';
import { mustRun } from '../run/shell.ts';
import { chooseTests, type ChosenTests, literally, patternOf } from '../skips.ts';
import {
  columnOf,
  failsInBaseline,
  judge,
  type JunitCase,
  parseJunit,
  parseTestList,
  tableMarkdown,
  type UpstreamTable,
  type UpstreamVerdict,
} from '../upstream/results.ts';
import { UpstreamProgress } from '../upstream/progress.ts';
import type { CellContext } from './cell-context.ts';
import { baselineMode } from './cluster.ts';

/** Folder of programs in upstream's image. */
const programs = '/usr/local/bin';

/**
 * Checks the skip list against the tests of this release: an entry for a removed or renamed test would skip nothing. Runs first, since it
 * takes seconds.
 */
export function chooseUpstream(context: CellContext, chosen: (tests: ChosenTests) => void): Step {
  const { shell, release, matrix, skips, cell, folder } = context;
  const timeout = seconds(600);
  return {
    name: "choose upstream's tests",
    timeout,
    advice: 'correct e2e/upstream-skips or upstreamFocus, or pull the image by hand',
    run: async (signal) => {
      const image = upstreamImageOf(release);
      const args = ['run', '--rm', '--entrypoint', `${programs}/e2e.test`, image, '--list-tests'];
      const list = await mustRun(shell, { file: 'docker', args, timeout }, `${image} lists no tests`, signal);
      const names = parseTestList(list);
      if (shell.isDry) return undefined;
      const tests = chooseTests(names, { focus: matrix.upstreamFocus, skips, cell });
      await writeFile(`${folder}/upstream-tests.json`, `${JSON.stringify(tests, null, 2)}\n`);
      if (tests.unusedFocus.length > 0) throw unusedFocus(tests, names.length);
      if (tests.unused.length > 0) throw unusedSkips(tests);
      if (tests.run.length === 0)
        throw new HostError('e2e.upstream', `of ${names.length} tests all in focus are skipped`);
      chosen(tests);
      return `${tests.run.length} to run, ${tests.skipped.length} skipped with reasons`;
    },
  };
}

function unusedFocus({ unusedFocus: starts }: ChosenTests, count: number): HostError {
  const what = `of ${count} tests none has a name that begins with: ${starts.join('; ')}`;
  return new HostError('e2e.focus', `${what} (upstreamFocus of e2e/matrix.json)`);
}

function unusedSkips({ unused }: ChosenTests): HostError {
  const lines = unused.map(({ place, test }) => `${place} (${test.join(' ... ')})`);
  return new HostError('e2e.skips', `no test in focus has the name of: ${lines.join('; ')}`);
}

/** A run of upstream's tests. */
export interface UpstreamRun {
  readonly tests: () => ChosenTests;
  /** Whether it runs with kube-proxy. */
  readonly isBaseline: boolean;
}

/** Runs them from a container on kind's network. Tests that fail are findings, and no failure of the step. */
export function runUpstream(
  context: CellContext,
  findings: Findings,
  { tests: chosen, isBaseline }: UpstreamRun,
): Step {
  const { shell, folder, cluster } = context;
  const results = `${folder}/${isBaseline ? 'upstream-baseline' : 'upstream'}`;
  const timeout = seconds(3 * 3600);
  let progress: UpstreamProgress | undefined;
  return {
    name: `run upstream's tests${isBaseline ? ' with kube-proxy' : ''}`,
    progress: () => progress?.text ?? 'starting',
    timeout,
    advice: 'read upstream/e2e.log; a test that cannot pass on kind belongs into e2e/upstream-skips, with its reason',
    run: async (signal) => {
      const kubeconfig = `${folder}/kubeconfig-internal`;
      const get = ['get', 'kubeconfig', '--internal', '--name', cluster];
      const text = await mustRun(shell, { file: 'kind', args: get, timeout }, 'kind printed no kubeconfig', signal);
      if (!shell.isDry) {
        await writeFile(kubeconfig, text, { mode: 0o600 });
        await mkdir(results, { recursive: true });
      }
      progress = new UpstreamProgress(shell.isDry ? [] : chosen().run, ({ name, how }) => {
        if (how !== 'passed' && how !== 'skipped') context.print(`  upstream ${how}: ${name}`);
      });
      const onPiece = (piece: string): void => progress?.take(piece);
      const command = { file: 'docker', args: upstreamArguments(context, { kubeconfig, results }), timeout, onPiece };
      const { stdout, stderr, exitCode } = await shell.run(command, signal);
      if (shell.isDry) return undefined;
      await writeFile(`${results}/e2e.log`, `${stdout}\n${stderr}`);
      const verdict = judge(chosen(), await readReports(results));
      const table = await addColumn(context, isBaseline, verdict);
      return noteVerdict(verdict, { findings, exitCode, table, tests: chosen(), isBaseline });
    },
  };
}

function upstreamArguments(
  context: CellContext,
  { kubeconfig, results }: { readonly kubeconfig: string; readonly results: string },
): readonly string[] {
  const { cluster, network, release, matrix, skips, cell, upstreamJobs } = context;
  const skipped = skips.filter((entry) => isSelected(entry, cell));
  const container = [
    '--rm',
    '--name',
    `${cluster}-upstream`,
    '--label',
    `${clusterLabel}=${cluster}`,
    '--network',
    network,
  ];
  const volumes = ['--volume', `${kubeconfig}:/kubeconfig:ro`, '--volume', `${results}:/results`];
  const choice = [
    `--focus=${matrix.upstreamFocus.map(literally).join('|')}`,
    ...skipped.map((one) => `--skip=${patternOf(one)}`),
  ];
  // -v prints each test with its name when it ends, which is how progress is followed.
  const ginkgo = [`--procs=${upstreamJobs}`, '--timeout=150m', '--no-color', '-v', ...choice];
  const suite = [
    '--kubeconfig=/kubeconfig',
    '--provider=skeleton',
    '--num-nodes=2',
    '--disable-log-dump',
    '--report-dir=/results',
  ];
  const image = ['--entrypoint', `${programs}/ginkgo`, upstreamImageOf(release)];
  return ['run', ...container, ...volumes, ...image, ...ginkgo, `${programs}/e2e.test`, '--', ...suite];
}

async function readReports(folder: string): Promise<readonly JunitCase[]> {
  const names = (await readdir(folder)).filter((name) => /^junit.*\.xml$/.test(name)).sort();
  const texts = await Promise.all(names.map((name) => readFile(`${folder}/${name}`, 'utf8')));
  return texts.flatMap(parseJunit);
}

/** Adds a run to the cell's table of tests by proxy, and writes that. */
async function addColumn(
  { folder, cell }: CellContext,
  isBaseline: boolean,
  verdict: UpstreamVerdict,
): Promise<UpstreamTable> {
  const file = `${folder}/upstream-table`;
  const proxy = isBaseline ? `kube-proxy ${baselineMode({ cell })}` : `switchyard ${cell.backend}`;
  const text = await readFile(`${file}.json`, 'utf8').catch(() => '{ "columns": [] }');
  const before = JSON.parse(text) as UpstreamTable; // written here
  const table = { columns: [...before.columns, columnOf(proxy, isBaseline, verdict)] };
  await writeFile(`${file}.json`, `${JSON.stringify(table, null, 2)}\n`);
  await writeFile(`${file}.md`, tableMarkdown(table));
  return table;
}

interface VerdictPlace {
  readonly findings: Findings;
  readonly exitCode: number;
  readonly table: UpstreamTable;
  readonly tests: ChosenTests;
  readonly isBaseline: boolean;
}

/** Failures of the baseline, and failures that the baseline has too, are notes. */
function noteVerdict(verdict: UpstreamVerdict, place: VerdictPlace): string {
  const { findings, exitCode, table, tests, isBaseline } = place;
  const { passed, failed, skippedThemselves, missing } = verdict;
  const who = isBaseline ? 'upstream with kube-proxy' : 'upstream';
  const counts = `${passed.length} passed, ${failed.length} failed, ${skippedThemselves.length} skipped themselves`;
  if (missing.length > 0) {
    const some = missing.slice(0, 3).join('; ');
    throw new HostError(
      'e2e.upstream',
      `${missing.length} tests are in no report, for example ${some}; ${counts}; exit ${exitCode}`,
    );
  }
  for (const { name, message } of failed) {
    const line = `${who} ${name}: ${message.split('\n')[0] ?? ''}`;
    if (isBaseline) findings.notes.push(line);
    else if (failsInBaseline(table, name)) findings.notes.push(`${line} (fails with kube-proxy too)`);
    else findings.failures.push(line);
  }
  if (failed.length === 0 && exitCode !== 0) {
    throw new HostError('e2e.upstream', `ginkgo ended with ${exitCode}, though no test failed: ${counts}`);
  }
  findings.notes.push(`${who}: ${counts}, ${tests.skipped.length} skipped by e2e/upstream-skips`);
  for (const { name, message } of skippedThemselves) findings.notes.push(`${who} skipped itself: ${name}: ${message}`);
  return counts;
}
