import { HostError, messageOf, seconds } from '@switchyard/core';
import { type CellContext, kubeconfigOf } from '../steps/cell-context.ts';
import { cellSteps } from '../steps/cell-steps.ts';
import { writeDiagnostics } from '../steps/diagnostics.ts';
import { tearDown } from '../steps/tear-down.ts';
import { type CellOutcome, type Findings, outcomeOf } from './outcome.ts';
import { runSteps } from './run-steps.ts';

/**
 * Runs one cell: its steps, diagnostics after a failure, and always the tear-down. Rejects with the signal's reason
 * when it is aborted, after the tear-down; diagnostics are left out then.
 */
export async function runCell(context: CellContext, signal: AbortSignal): Promise<CellOutcome> {
  const { cell, owners, cluster, shell } = context;
  const other = shell.isDry ? undefined : await owners.claim(cluster);
  if (other !== undefined) {
    const because = [`process ${other.pid} runs this cell already, in the cluster ${cluster}: wait for it, or stop it`];
    return { id: cell.id, status: 'error', because, notes: [] };
  }
  const findings: Findings = { failures: [], notes: [] };
  const problem = await attempt(() => runSteps(cellSteps(context, findings), context, signal));
  if (!signal.aborted && !shell.isDry && (problem !== undefined || findings.failures.length > 0)) {
    context.print('  something went wrong: writing diagnostics');
    context.print(`  diagnostics are in ${await writeDiagnostics(context, signal)}`);
  }
  const left = await attempt(() => endCell(context, problem, signal));
  signal.throwIfAborted();
  const problems = [problem, left].filter((one) => one !== undefined);
  return outcomeOf(cell.id, problems, findings);
}

/** Message of the error that the work rejected with; undefined: none. */
async function attempt(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Keeps or removes the cluster, also after an abort, so it has a signal of its own. */
async function endCell(context: CellContext, problem: string | undefined, signal: AbortSignal): Promise<void> {
  const { cluster, owners, shell, print, isKept, purpose, clock, cell } = context;
  // A cluster for work that failed to start is removed.
  if (isKept && !signal.aborted && (purpose === 'test' || problem === undefined)) {
    if (!shell.isDry) await owners.keep(cluster);
    print(`  the cluster ${cluster} stays until ./dev e2e down ${cell.id}; for kubectl:`);
    print(`export KUBECONFIG=${kubeconfigOf(context)}`);
    return;
  }
  const limit = new AbortController();
  const done = new AbortController();
  const expire = clock
    .sleep(seconds(300), done.signal)
    .then(() =>
      limit.abort(new HostError('e2e.tear-down', `it did not end within 300 s: kind delete cluster --name ${cluster}`)),
    )
    .catch(() => undefined);
  print(`  removing the cluster ${cluster} and what belongs to it`);
  try {
    await tearDown(shell, { cluster, owners }, limit.signal);
  } finally {
    done.abort();
    await expire;
  }
}
