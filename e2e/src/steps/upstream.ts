import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { HostError, seconds } from '@switchyard/core';
import { clusterLabel } from '../cluster-name.ts';
import { upstreamImageOf } from '../matrix/matrix.ts';
import { isSelected } from '../matrix/selector.ts';
import type { Step } from '../run/run-steps.ts';
import { mustRun } from '../run/shell.ts';
import { type ChosenTests, chooseTests, literally, patternOf } from '../skips/choose-tests.ts';
import { judge } from '../upstream/judge.ts';
import { type JunitCase, parseJunit } from '../upstream/junit.ts';
import { parseTestList } from '../upstream/list-tests.ts';
import { UpstreamProgress } from '../upstream/progress.ts';
import type { CellContext } from './cell-context.ts';
import type { Findings } from './findings.ts';

/** Where upstream's image has its programs. */
const programs = '/usr/local/bin';

/**
 * Checks the skip list against the tests that this release has: a test that is gone or has another name would be skipped without a reason, or
 * run against one. Before anything is run, since it takes seconds.
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

/** Runs them from a container on kind's network. Tests that fail are findings, and no failure of the step. */
export function runUpstream(context: CellContext, findings: Findings, chosen: () => ChosenTests): Step {
  const { shell, folder, cluster } = context;
  const timeout = seconds(3 * 3600);
  let progress: UpstreamProgress | undefined;
  return {
    name: "run upstream's tests",
    progress: () => progress?.text ?? 'starting',
    timeout,
    advice: 'read upstream/e2e.log; a test that cannot pass on kind belongs into e2e/upstream-skips, with its reason',
    run: async (signal) => {
      const kubeconfig = `${folder}/kubeconfig-internal`;
      const get = ['get', 'kubeconfig', '--internal', '--name', cluster];
      const text = await mustRun(shell, { file: 'kind', args: get, timeout }, 'kind tells no kubeconfig', signal);
      if (!shell.isDry) {
        await writeFile(kubeconfig, text, { mode: 0o600 });
        await mkdir(`${folder}/upstream`, { recursive: true });
      }
      progress = new UpstreamProgress(shell.isDry ? [] : chosen().run, ({ name, how }) => {
        if (how !== 'passed' && how !== 'skipped') context.print(`  upstream ${how}: ${name}`);
      });
      const onPiece = (piece: string): void => progress?.take(piece);
      const command = { file: 'docker', args: upstreamArguments(context, kubeconfig), timeout, onPiece };
      const { stdout, stderr, exitCode } = await shell.run(command, signal);
      if (shell.isDry) return undefined;
      await writeFile(`${folder}/upstream/e2e.log`, `${stdout}\n${stderr}`);
      return noteVerdict(chosen(), await readReports(`${folder}/upstream`), { findings, exitCode });
    },
  };
}

function upstreamArguments(context: CellContext, kubeconfig: string): readonly string[] {
  const { cluster, network, folder, release, matrix, skips, cell, upstreamJobs } = context;
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
  const volumes = ['--volume', `${kubeconfig}:/kubeconfig:ro`, '--volume', `${folder}/upstream:/results`];
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

function noteVerdict(
  tests: ChosenTests,
  report: readonly JunitCase[],
  { findings, exitCode }: { readonly findings: Findings; readonly exitCode: number },
): string {
  const { passed, failed, skippedThemselves, missing } = judge(tests, report);
  const counts = `${passed.length} passed, ${failed.length} failed, ${skippedThemselves.length} skipped themselves`;
  if (missing.length > 0) {
    const some = missing.slice(0, 3).join('; ');
    throw new HostError(
      'e2e.upstream',
      `${missing.length} tests are in no report, for example ${some}; ${counts}; exit ${exitCode}`,
    );
  }
  for (const { name, message } of failed) findings.failures.push(`upstream ${name}: ${message.split('\n')[0] ?? ''}`);
  if (failed.length === 0 && exitCode !== 0) {
    throw new HostError('e2e.upstream', `ginkgo ended with ${exitCode}, though no test failed: ${counts}`);
  }
  findings.notes.push(`upstream: ${counts}, ${tests.skipped.length} skipped by e2e/upstream-skips`);
  for (const { name, message } of skippedThemselves)
    findings.notes.push(`upstream skipped itself: ${name}: ${message}`);
  return counts;
}
