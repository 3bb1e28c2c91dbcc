import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReportFile } from '@switchyard/conformance';
import { HostError, seconds } from '@switchyard/core';
import { commandFailed } from '@switchyard/host';
import type { Step } from '../run/run-steps.ts';
import { type CellContext, kubeconfigOf } from './cell-context.ts';
import type { Findings } from './findings.ts';

/** Runs the conformance suite against the cluster. Cases that fail are findings, and no failure of the step. */
export function runConformance(context: CellContext, findings: Findings): Step {
  const { cell, folder, shell, checkout } = context;
  const timeout = seconds(3600);
  const report = `${folder}/conformance.json`;
  return {
    name: 'run the conformance suite',
    timeout,
    advice: 'read conformance.log; the same run by hand is its command in commands.log',
    run: async (signal) => {
      const target = ['run', '-v', '--target', 'cluster', '--kubeconfig', kubeconfigOf(context)];
      const proxy = [
        '--mode',
        cell.backend,
        '--proxy-name',
        `switchyard-${cell.backend}`,
        '--ip-family',
        cell.ipFamily,
      ];
      const reports = [
        '--json',
        report,
        '--junit',
        `${folder}/conformance.junit.xml`,
        '--html',
        `${folder}/conformance.html`,
      ];
      const program = ['--conditions=@switchyard/source', join(checkout, 'apps/conformance/src/main.ts')];
      const command = { file: 'node', args: [...program, ...target, ...proxy, ...reports], timeout };
      const result = await shell.run(command, signal);
      if (shell.isDry) return undefined;
      await writeFile(`${folder}/conformance.log`, `${result.stdout}\n${result.stderr}`);
      if (result.exitCode > 1) throw commandFailed('the conformance suite knows nothing of the proxy', command, result);
      return noteConformance(report, findings);
    },
  };
}

/** Takes down what a report of our runner says. Returns the counts. Rejects with `HostError` when the file is no such report. */
export async function noteConformance(file: string, findings: Findings): Promise<string> {
  return note(await readReport(file), findings);
}

async function readReport(file: string): Promise<ReportFile> {
  const report = JSON.parse(await readFile(file, 'utf8')) as ReportFile; // written by our own runner
  if (report.schema === 'switchyard-conformance/1') return report;
  throw new HostError(
    'e2e.report',
    `${file} is no report of the conformance runner: its schema is ${String(report.schema)}`,
  );
}

function note({ runs }: ReportFile, { failures, notes }: Findings): string {
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
