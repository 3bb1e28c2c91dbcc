import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { referenceDataplane } from '@switchyard/scenarios';
import { ConfigError, HostError, InvariantError, messageOf, seconds } from '@switchyard/core';
import { clusterName } from '../cell.ts';
import type { ListedCell, Session } from '../session.ts';
import { isSelected } from '../matrix.ts';
import { readSkipFolder, type SkipEntry } from '../skips.ts';
import { type CellContext, type CellSettings, kubeconfigOf } from '../steps/cell-context.ts';
import { runLabCell } from '../steps/conformance.ts';
import { mergedTable, tableMarkdown, type UpstreamTable } from '../upstream/results.ts';
import { type CellOutcome, type Findings, outcomeOf, runSteps } from './run-steps.ts';
import { dryShell, programShell } from './shell.ts';
import { cellSteps } from '../steps/cell-steps.ts';
import { writeDiagnostics } from '../steps/diagnostics.ts';
import { tearDown } from '../steps/cluster.ts';

/**
 * Runs cells one after the other. A cell that cannot run here is skipped with the reason; where it was named in full, or none at all could
 * run, that is an error, because it was expected to run.
 */
export async function runCells(
  session: Session,
  listed: readonly ListedCell[],
  signal: AbortSignal,
): Promise<readonly CellOutcome[]> {
  const settings = await cellSettings(session);
  const lab = listed.find(({ cell }) => cell.kind === 'lab');
  if (session.options.kind === 'up' && lab !== undefined)
    throw new ConfigError('e2e.cell', `${lab.cell.id} has no cluster; ./dev lab up makes a lab`);
  if (session.options.kind === 'docs') refuseForPages(listed);
  const isAnyRunnable = listed.some(({ obstacles }) => obstacles.length === 0);
  const outcomes: CellOutcome[] = [];
  for (const one of listed) {
    signal.throwIfAborted();
    const { id } = one.cell;
    const isExpected = !isAnyRunnable || session.options.cells.includes(id);
    outcomes.push(
      one.obstacles.length > 0
        ? { id, status: isExpected ? 'error' : 'skipped', because: one.obstacles, notes: [] }
        : await runOne(one, { session, settings }, signal),
    );
  }
  if (!session.options.isDry) await writeMergedTable(session.results, outcomes);
  return outcomes;
}

/** The pages speak of images of the nftables mode and of both families, and of our LoadBalancer controller. */
function refuseForPages(listed: readonly ListedCell[]): void {
  const other = listed.find(
    ({ cell }) =>
      cell.kind === 'lab' ||
      cell.backend !== referenceDataplane.name ||
      cell.ipFamily !== 'dual' ||
      cell.loadBalancer !== 'switchyard',
  );
  if (other !== undefined)
    throw new ConfigError('e2e.cell', `${other.cell.id}: the pages run on cells such as nftables-dual-1.36-switchyard`);
}

/** Upstream's tests by proxy over all cells of the call, where more than one has such a table. */
async function writeMergedTable(results: string, outcomes: readonly CellOutcome[]): Promise<void> {
  const tables = await Promise.all(
    outcomes.map(async ({ id, status }) => {
      const file = join(results, id, 'upstream-table.json');
      const text = status === 'skipped' ? '' : await readFile(file, 'utf8').catch(() => '');
      return text === '' ? [] : [{ id, table: JSON.parse(text) as UpstreamTable }]; // written by this call
    }),
  );
  const found = tables.flat();
  if (found.length < 2) return;
  await writeFile(join(results, 'upstream-table.md'), tableMarkdown(mergedTable(found)));
}

async function cellSettings(session: Session): Promise<CellSettings> {
  const { options, surroundings, matrix, owners } = session;
  return {
    ...surroundings,
    ...options,
    matrix,
    owners,
    isKept: options.isKept || options.kind === 'up',
    purpose: options.kind === 'up' ? 'up' : options.kind === 'docs' ? 'pages' : 'test',
    upstreamJobs: options.jobs,
    skips: await readSkips(session),
    built: new Set(),
  };
}

/** Throws `ConfigError` for an entry that is for no cell at all, which no run would report as unused. Another matrix may have fewer cells. */
async function readSkips({ options, surroundings, expanded }: Session): Promise<readonly SkipEntry[]> {
  const skips = await readSkipFolder(join(surroundings.checkout, 'e2e/upstream-skips'));
  if (options.matrix !== undefined) return skips;
  const idle = skips.find((entry) => !expanded.cells.some((cell) => isSelected(entry, cell)));
  if (idle !== undefined)
    throw new ConfigError('e2e.skips', `${idle.place}: no cell of the matrix is one of its cells`);
  return skips;
}

async function runOne(
  { cell }: ListedCell,
  { session, settings }: { readonly session: Session; readonly settings: CellSettings },
  signal: AbortSignal,
): Promise<CellOutcome> {
  const { options, surroundings, results } = session;
  const { clock, print, runner, checkout } = surroundings;
  const folder = join(results, cell.id);
  if (!options.isDry) {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
  }
  print(`${cell.id}: results in ${folder}`);
  const began = clock.monotonic();
  const shell = options.isDry ? dryShell(print) : programShell(runner, { file: join(folder, 'commands.log'), clock });
  const outcome =
    cell.kind === 'lab'
      ? await runLabCell(cell, { checkout, folder, shell, clock, print }, signal)
      : await runCell(
          {
            ...settings,
            cell,
            release: releaseOf(session, cell.kubernetes),
            cluster: clusterName(cell),
            folder,
            shell,
          },
          signal,
        );
  if (options.isDry) return outcome;
  await writeFile(join(folder, 'outcome.json'), `${JSON.stringify(outcome, null, 2)}\n`);
  print(`${cell.id}: ${outcome.status} after ${((clock.monotonic() - began) / 1000).toFixed(0)} s`);
  return outcome;
}

function releaseOf({ matrix }: Session, version: string): Session['matrix']['kubernetes'][number] {
  const release = matrix.kubernetes.find((one) => one.version === version);
  if (release === undefined) throw new InvariantError(`a cell has Kubernetes ${version}, and the matrix does not`);
  return release;
}

/**
 * Runs one cell: its steps, diagnostics after a failure, and always the tear-down. Rejects with the signal's reason
 * when it is aborted, after the tear-down; diagnostics are left out then.
 */
async function runCell(context: CellContext, signal: AbortSignal): Promise<CellOutcome> {
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
