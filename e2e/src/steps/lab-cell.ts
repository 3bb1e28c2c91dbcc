import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, seconds } from '@switchyard/core';
import { commandFailed } from '@switchyard/host';
import type { LabCell } from '../lab-cell.ts';
import type { CellOutcome } from '../run/outcome.ts';
import { runSteps, type Step, type StepRunner } from '../run/run-steps.ts';
import { type CellCommand, mustRun } from '../run/shell.ts';
import { noteConformance } from './conformance.ts';
import type { Findings } from './findings.ts';

/** Where a lab cell runs. */
export interface LabCellContext extends StepRunner {
  readonly checkout: string;
  /** For its reports. */
  readonly folder: string;
}

/** Runs the conformance suite in a lab of its own, which it builds and removes by itself. */
export async function runLabCell(cell: LabCell, context: LabCellContext, signal: AbortSignal): Promise<CellOutcome> {
  const findings: Findings = { failures: [], notes: [] };
  let problem: string | undefined;
  try {
    await runSteps([labStep(cell, context, findings)], context, signal);
  } catch (error) {
    problem = messageOf(error);
    await removeDeadLabs(context);
  }
  signal.throwIfAborted();
  return {
    id: cell.id,
    status: problem !== undefined ? 'error' : findings.failures.length > 0 ? 'failed' : 'passed',
    because: [...(problem === undefined ? [] : [problem]), ...findings.failures],
    notes: findings.notes,
  };
}

function labStep(cell: LabCell, { checkout, folder, shell }: LabCellContext, findings: Findings): Step {
  const command = labCommand(cell, { checkout, folder });
  return {
    name: 'run the conformance suite in a lab',
    timeout: command.timeout,
    advice: 'read conformance.log; ./dev conformance --help says how to run a part of it',
    run: async (signal) => {
      const result = await shell.run(command, signal);
      if (shell.isDry) return undefined;
      await writeFile(`${folder}/conformance.log`, `${result.stdout}\n${result.stderr}`);
      if (result.exitCode > 1) throw commandFailed('the conformance suite knows nothing of the proxy', command, result);
      return noteConformance(`${folder}/conformance.json`, findings);
    },
  };
}

function labCommand(
  { backend, ipFamily }: LabCell,
  { checkout, folder }: Pick<LabCellContext, 'checkout' | 'folder'>,
): CellCommand {
  const program = ['--conditions=@switchyard/source', join(checkout, 'apps/conformance/src/main.ts')];
  const choice = ['run', '-v', '--target', 'lab', '--backend', backend, '--ip-family', ipFamily];
  const reports = ['--json', `${folder}/conformance.json`, '--junit', `${folder}/conformance.junit.xml`];
  const rest = ['--html', `${folder}/conformance.html`, '--lab-name', 'e2elab'];
  return { file: 'node', args: [...program, ...choice, ...reports, ...rest], timeout: seconds(3600) };
}

/** A runner that was ended by force had no time to remove its labs. Not under the cell's signal: that may be why. */
async function removeDeadLabs({ checkout, shell, print }: LabCellContext): Promise<void> {
  const args = ['--conditions=@switchyard/source', join(checkout, 'packages/lab/src/main.ts'), 'down', '--dead'];
  print('  removing labs whose process is gone');
  try {
    const never = new AbortController().signal;
    await mustRun(shell, { file: 'node', args, timeout: seconds(120) }, 'dead labs are still there', never);
  } catch (error) {
    print(`  ${messageOf(error)}; ./dev lab down --dead removes them`);
  }
}
