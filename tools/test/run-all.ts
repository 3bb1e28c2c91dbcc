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

/** Set by ^C or SIGTERM: the running step ends by itself, no other one starts, a second ^C ends at once. */
let interruptedBy: NodeJS.Signals | undefined;
let running: { kill(signal: NodeJS.Signals): boolean } | undefined;

function onSignal(name: NodeJS.Signals): void {
  if (interruptedBy !== undefined) process.exit(130);
  interruptedBy = name;
  if (name === 'SIGTERM') running?.kill('SIGINT'); // ^C reaches the children without us
}

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
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  for (const check of checks) if (interruptedBy === undefined) results.push(await runCheck(check));
  if (interruptedBy === undefined) results.push(...(await runTarget('test', 'unit')));
  if (interruptedBy === undefined) results.push(...(await runTarget('test-privileged', 'privileged')));
  if (interruptedBy !== undefined) return endInterrupted(interruptedBy);
  console.log(`\n${formatSummary(results)}`);
  if (results.some((result) => result.failed > 0)) process.exitCode = 1;
}

/** Tests that were killed leave their labs behind; nobody owns them any more. */
async function endInterrupted(signal: NodeJS.Signals): Promise<void> {
  const down = ['--conditions=@switchyard/source', join(root, 'packages/lab/src/main.ts'), 'down', '--dead'];
  await execa('node', down, { cwd: root, reject: false, stdio: 'inherit' });
  console.error(`test: interrupted by ${signal}; nothing was counted`);
  process.exitCode = 130;
}

async function runCheck(check: Check): Promise<RunnerResult> {
  const started = performance.now();
  process.stdout.write(`test: ${check.name} ... `);
  const [file, ...args] = check.command;
  const child = execa(file, args, {
    cwd: root,
    env: colours,
    all: true,
    reject: false,
    stdin: 'ignore',
  });
  running = child;
  const { exitCode, all } = await child;
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
  const child = execa('nx', ['run-many', '-t', target, '--output-style=stream', '--nxBail=false'], {
    cwd: root,
    env: colours,
    reject: false,
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'inherit',
  });
  running = child;
  await child;
  return workspaces()
    .filter((project) => project.targets.includes(target))
    .map((project) =>
      readVitestReport(`${report} ${project.folder}`, join(root, project.folder, `.test-results/${report}.json`)),
    );
}

await main(process.argv.slice(2));
