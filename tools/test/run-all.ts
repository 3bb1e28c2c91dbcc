import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { root } from '../workspace.ts';
import { type EndedSuite, repeatFailed } from './repeat.ts';
import { type Counts, formatSummary, readVitestReport, type SuiteResult } from './results.ts';
import { runStage } from './run-stage.ts';
import { stages, type Suite } from './suites.ts';

// Runs every check and every test of the project and ends with `N passed, N failed, N skipped`.
// A suite that fails does not stop the others.

const isRoot = process.getuid?.() === 0;

const noRoot = 'test: the kernel tests need root; run: sudo ./dev test';
const usage =
  'usage: ./dev test [--quick]\n' +
  '  --quick  types, lint, unit tests, and a few packets in each mode; for one package: nx test NAME';

const environment = {
  // nx and vitest turn colours on even without a terminal; a log file shall stay readable.
  ...(process.stdout.isTTY ? {} : { FORCE_COLOR: '0' }),
  /** For tests that stop in time for the others. */
  SWITCHYARD_TEST_BEGAN: String(Date.now()),
};

/** Set by ^C or SIGTERM: the running suites end by themselves, no other one starts, a second ^C ends at once. */
let interruptedBy: NodeJS.Signals | undefined;
const running = new Set<{ kill(signal: NodeJS.Signals): boolean }>();

function onSignal(name: NodeJS.Signals): void {
  if (interruptedBy !== undefined) process.exit(130);
  interruptedBy = name;
  if (name === 'SIGTERM') for (const child of running) child.kill('SIGINT'); // the terminal sends ^C to the children itself
}

async function main(args: readonly string[]): Promise<void> {
  const isKnown = args.length === 0 || (args.length === 1 && args[0] === '--quick');
  const refusal = !isKnown ? usage : isRoot ? undefined : noRoot;
  if (refusal !== undefined) {
    console.error(refusal);
    process.exitCode = 1;
    return;
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  const started = performance.now();
  const ended: EndedSuite[] = [];
  for (const stage of stages(args.length === 0 ? 'all' : 'quick')) {
    await runStage(stage, async (suite) => {
      if (interruptedBy === undefined) ended.push({ suite, result: await runSuite(suite) });
    });
  }
  const results = interruptedBy === undefined ? await repeatFailed(ended, runSuite) : [];
  if (interruptedBy !== undefined) return endInterrupted(interruptedBy);
  console.log(`\n${formatSummary(results, (performance.now() - started) / 1000)}`);
  if (results.some((result) => result.failed > 0)) process.exitCode = 1;
}

/** Killed tests leave labs without an owner behind. */
async function endInterrupted(signal: NodeJS.Signals): Promise<void> {
  const down = ['--conditions=@switchyard/source', join(root, 'packages/lab/src/main.ts'), 'down', '--dead'];
  await execa('node', down, { cwd: root, reject: false, stdio: 'inherit' });
  console.error(`test: interrupted by ${signal}; nothing was counted`);
  process.exitCode = 130;
}

/** Runs a suite, shows how it ended, and what it wrote if it failed. */
async function runSuite(suite: Suite): Promise<SuiteResult> {
  const { name, command, folder, report } = suite;
  if (report !== undefined) rmSync(report, { force: true });
  const started = performance.now();
  const [file, ...args] = command;
  const child = execa(file, args, {
    cwd: folder ?? root,
    env: environment,
    all: true,
    reject: false,
    stdin: 'ignore',
  });
  running.add(child);
  const { exitCode, all } = await child;
  running.delete(child);
  const seconds = (performance.now() - started) / 1000;
  const exit = ofExit(suite, exitCode);
  const counts = report === undefined ? exit : readVitestReport(name, report);
  // A failure outside of all tests is in no report.
  const result = { ...(counts.failed === 0 && exit.failed > 0 ? exit : counts), seconds };
  const shown = `${result.passed} passed, ${result.failed} failed, ${result.skipped.length} skipped`;
  console.log(`test: ${name}: ${result.failed === 0 ? 'ok' : 'FAILED'}, ${shown} (${seconds.toFixed(1)} s)`);
  if (result.failed > 0) console.log(all);
  return result;
}

function ofExit({ name, command }: Suite, exitCode: number | undefined): Counts {
  const failures = exitCode === 0 ? [] : [{ name: `${command.join(' ')} exited with ${exitCode ?? 'a signal'}` }];
  return { name, passed: 1 - failures.length, failed: failures.length, skipped: [], failures };
}

await main(process.argv.slice(2));
