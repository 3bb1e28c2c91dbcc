import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { root, workspaces } from '../workspace.ts';
import { formatSummary, readVitestReport, type RunnerResult } from './results.ts';

// Runs every check and every test of the project and ends with `N passed, N failed, N skipped`.
// Each check counts as one test. A runner that fails does not stop the others.

interface Check {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

const checks: readonly Check[] = [
  { name: 'format', command: ['oxfmt', '--check'] },
  { name: 'lint', command: ['oxlint', '--deny-warnings'] },
  { name: 'house-rules', command: ['tsx', 'tools/lint/run.ts'] },
  { name: 'lockfile', command: ['npm', 'run', '--silent', 'lockcheck'] },
  { name: 'types', command: ['npm', 'run', '--silent', 'typecheck'] },
  { name: 'bundle', command: ['nx', 'run-many', '-t', 'bundle', '--output-style=static'] },
  { name: 'tools', command: ['node', '--test', 'tools/**/*.test.ts'] },
];

const isRoot = process.getuid?.() === 0;

const noRoot = 'test: the kernel tests need root; run: sudo ./dev test';
const noArguments =
  'test: takes no arguments, it runs everything; for one package: cd packages/core && npx vitest run [FILE]';

/** nx turns colours on even where nobody sees them; a log file shall stay readable. */
const colours = process.stdout.isTTY ? {} : { FORCE_COLOR: '0' };

async function main(args: readonly string[]): Promise<void> {
  const refusal = args.length > 0 ? noArguments : isRoot ? undefined : noRoot;
  if (refusal !== undefined) {
    console.error(refusal);
    process.exitCode = 1;
    return;
  }
  const projects = workspaces();
  for (const project of projects) rmSync(join(root, project.folder, '.test-results'), { recursive: true, force: true });
  const results: RunnerResult[] = [];
  for (const check of checks) results.push(await runCheck(check));
  results.push(...(await runTarget('test', 'unit')));
  results.push(...(await runTarget('test-privileged', 'privileged')));
  console.log(`\n${formatSummary(results)}`);
  if (results.some((result) => result.failed > 0)) process.exitCode = 1;
}

async function runCheck(check: Check): Promise<RunnerResult> {
  const started = performance.now();
  process.stdout.write(`test: ${check.name} ... `);
  const [file, ...args] = check.command;
  const { exitCode, all } = await execa(file, args, {
    cwd: root,
    env: colours,
    all: true,
    reject: false,
    stdin: 'ignore',
  });
  const seconds = (performance.now() - started) / 1000;
  const isPassed = exitCode === 0;
  console.log(`${isPassed ? 'ok' : 'FAILED'} (${seconds.toFixed(1)} s)`);
  if (!isPassed) console.log(all);
  const failures = isPassed ? [] : [`${check.command.join(' ')} exited with ${exitCode ?? 'a signal'}`];
  return { name: check.name, passed: isPassed ? 1 : 0, failed: failures.length, skipped: [], failures, seconds };
}

/** Runs an nx target in every project that has it, showing the output as it comes, and reads the reports. */
async function runTarget(target: string, report: 'unit' | 'privileged'): Promise<readonly RunnerResult[]> {
  console.log(`test: ${report} tests of every package`);
  await execa('nx', ['run-many', '-t', target, '--output-style=stream', '--nxBail=false'], {
    cwd: root,
    env: colours,
    reject: false,
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'inherit',
  });
  return workspaces()
    .filter((project) => project.targets.includes(target))
    .map((project) =>
      readVitestReport(`${report} ${project.folder}`, join(root, project.folder, `.test-results/${report}.json`)),
    );
}

await main(process.argv.slice(2));
