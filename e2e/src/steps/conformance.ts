import { readFile, writeFile } from 'node:fs/promises';
import type { ReportFile } from '@switchyard/conformance';
import { HostError, messageOf, seconds } from '@switchyard/core';
import { commandFailed } from '@switchyard/host';
import { type CellOutcome, type Findings, outcomeOf, runSteps, type Step, type StepRunner } from '../run/run-steps.ts';
import { mustRun, nodeProgram } from '../run/shell.ts';
import { type CellContext, kubeconfigOf } from './cell-context.ts';
import type { LabCell } from '../cell.ts';

interface SuiteRun {
  readonly name: string;
  readonly advice: string;
  /** Flags that choose the target and the proxy. */
  readonly flags: readonly string[];
}

/** Runs the conformance suite against the cluster. */
export function runConformance(context: CellContext, findings: Findings): Step {
  const { cell } = context;
  const target = ['--target', 'cluster', '--kubeconfig', kubeconfigOf(context)];
  const proxy = ['--mode', cell.backend, '--proxy-name', `switchyard-${cell.backend}`, '--ip-family', cell.ipFamily];
  return suiteStep(
    {
      name: 'run the conformance suite',
      advice: 'read conformance.log; the same run by hand is its command in commands.log',
      flags: [...target, ...proxy],
    },
    context,
    findings,
  );
}

/** Runs the suite with these flags and leaves its reports in the folder. Cases that fail are findings, and no failure of the step. */
function suiteStep(
  { name, advice, flags }: SuiteRun,
  { checkout, folder, shell }: Pick<CellContext, 'checkout' | 'folder' | 'shell'>,
  findings: Findings,
): Step {
  const timeout = seconds(3600);
  const json = `${folder}/conformance.json`;
  const reports = [
    '--json',
    json,
    '--junit',
    `${folder}/conformance.junit.xml`,
    '--html',
    `${folder}/conformance.html`,
  ];
  const args = ['run', '-v', ...flags, ...reports];
  const command = { ...nodeProgram(checkout, 'apps/conformance/src/main.ts', args), timeout };
  return {
    name,
    timeout,
    advice,
    run: async (signal) => {
      const result = await shell.run(command, signal);
      if (shell.isDry) return undefined;
      await writeFile(`${folder}/conformance.log`, `${result.stdout}\n${result.stderr}`);
      if (result.exitCode > 1) throw commandFailed('the conformance suite knows nothing of the proxy', command, result);
      return noteReport(json, findings);
    },
  };
}

/** Adds the failures and counts of a report to the findings. Returns the counts. Rejects with `HostError` if the file is not such a report. */
async function noteReport(file: string, { failures, notes }: Findings): Promise<string> {
  const { schema, runs } = JSON.parse(await readFile(file, 'utf8')) as ReportFile; // written by our own runner
  if (schema !== 'switchyard-conformance/2') {
    throw new HostError(
      'e2e.report',
      `${file} is no report of the conformance runner: its schema is ${String(schema)}`,
    );
  }
  const cases = runs.flatMap((run) => run.cases);
  for (const { id, title } of cases.filter(({ status }) => status === 'failed'))
    failures.push(`conformance ${id}: ${title}`);
  const counts = (['passed', 'failed', 'skipped', 'error'] as const)
    .map((status) => `${cases.filter((one) => one.status === status).length} ${status}`)
    .join(', ');
  notes.push(`conformance: ${counts}`);
  for (const { id, inconclusive = [] } of cases)
    for (const check of inconclusive) notes.push(`conformance inconclusive: ${id}, ${check.id}: ${check.because}`);
  return counts;
}

export interface LabCellContext extends StepRunner {
  readonly checkout: string;
  readonly folder: string;
}

/** Runs the conformance suite in a lab of its own, which it builds and removes by itself. */
export async function runLabCell(
  { id, backend, ipFamily }: LabCell,
  context: LabCellContext,
  signal: AbortSignal,
): Promise<CellOutcome> {
  const findings: Findings = { failures: [], notes: [] };
  const problems: string[] = [];
  const suite = {
    name: 'run the conformance suite in a lab',
    advice: 'read conformance.log; ./dev conformance --help says how to run a part of it',
    flags: ['--target', 'lab', '--backend', backend, '--ip-family', ipFamily, '--lab-name', 'e2elab'],
  };
  try {
    await runSteps([suiteStep(suite, context, findings)], context, signal);
  } catch (error) {
    problems.push(messageOf(error));
    await removeDeadLabs(context);
  }
  signal.throwIfAborted();
  return outcomeOf(id, problems, findings);
}

/** A runner that was ended by force had no time to remove its labs. Not under the cell's signal: that may be why. */
async function removeDeadLabs({ checkout, shell, print }: LabCellContext): Promise<void> {
  const command = nodeProgram(checkout, 'packages/lab/src/main.ts', ['down', '--dead']);
  print('  removing labs whose process is gone');
  try {
    const never = new AbortController().signal;
    await mustRun(shell, { ...command, timeout: seconds(120) }, 'dead labs are still there', never);
  } catch (error) {
    print(`  ${messageOf(error)}; ./dev lab down --dead removes them`);
  }
}
