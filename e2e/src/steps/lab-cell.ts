import { messageOf, seconds } from '@switchyard/core';
import type { LabCell } from '../lab-cell.ts';
import { type CellOutcome, type Findings, outcomeOf } from '../run/outcome.ts';
import { runSteps, type StepRunner } from '../run/run-steps.ts';
import { mustRun, nodeProgram } from '../run/shell.ts';
import { suiteStep } from './conformance.ts';

/** Inputs of a lab cell. */
export interface LabCellContext extends StepRunner {
  readonly checkout: string;
  /** Folder of its reports. */
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
