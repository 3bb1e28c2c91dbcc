import { type Clock, ConfigError, isExpected, messageOf } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { chosenCells, listedCells, listJson, listText, openSession, type Session } from './session.ts';
import type { MachineFacts } from './obstacles.ts';
import { parseOptions, usage } from './options.ts';
import { exitStatus, summaryLines } from './run/run-steps.ts';
import { runCells } from './run/run-cells.ts';
import { clusterName } from './cell.ts';
import { ourClusters, tearDown } from './steps/cluster.ts';

export interface E2eSurroundings {
  /** Absolute path of the checkout. */
  readonly checkout: string;
  /** The folder that relative paths of arguments mean. */
  readonly cwd: string;
  readonly runner: CommandRunner;
  readonly clock: Clock;
  readonly machine: MachineFacts;
  /** Folder for notes on the owners of clusters, which all checkouts of this machine share. */
  readonly stateFolder: string;
  /** Docker's network of kind's nodes. */
  readonly network: string;
  /** The engine's socket as containers mount it. */
  readonly dockerSocket: string;
  /** Prints a line to standard output. */
  readonly print: (line: string) => void;
}

/** Runs a command line. Resolves with the exit status; rejects only with the signal's reason, or for an error in the program. */
export async function runProgram(
  args: readonly string[],
  surroundings: E2eSurroundings,
  signal: AbortSignal,
): Promise<0 | 1 | 2 | 3> {
  try {
    const options = parseOptions(args);
    if (options.kind === 'help') {
      surroundings.print(usage);
      return 0;
    }
    const session = await openSession(options, surroundings);
    if (options.kind === 'clean' || options.kind === 'down') {
      await (options.kind === 'clean' ? clean : down)(session, signal);
      return 0;
    }
    const listed = await listedCells(session, signal);
    if (options.kind === 'list') {
      surroundings.print((options.isJson ? listJson : listText)(listed, session.expanded));
      return 0;
    }
    const outcomes = await runCells(session, listed, signal);
    if (!options.isDry) for (const line of summaryLines(outcomes)) surroundings.print(line);
    return exitStatus(outcomes);
  } catch (error) {
    signal.throwIfAborted();
    if (!isExpected(error)) throw error;
    surroundings.print(`e2e: ${messageOf(error)}`);
    return error instanceof ConfigError ? 2 : 3;
  }
}

/** Removes every cluster of e2e runs of any owner, with everything that belongs to it. */
async function clean({ surroundings, owners, shell }: Session, signal: AbortSignal): Promise<void> {
  const { print } = surroundings;
  const clusters = await ourClusters(shell, signal);
  for (const cluster of clusters) {
    print(`removing ${cluster}`);
    await tearDown(shell, { cluster, owners }, signal);
  }
  print(`${clusters.length} clusters of e2e runs were there`);
}

/**
 * Removes the clusters of the chosen cells with all that belongs to them, and the clusters that killed runs left. Throws `ConfigError` for a cell
 * that a living process runs; its cluster stays.
 */
async function down({ options, expanded, surroundings, owners, shell }: Session, signal: AbortSignal): Promise<void> {
  const { print } = surroundings;
  const there = new Set(await ourClusters(shell, signal));
  for (const cell of chosenCells(options, expanded)) {
    if (cell.kind === 'lab')
      throw new ConfigError('e2e.cell', `${cell.id} has no cluster; ./dev lab down removes labs`);
    const cluster = clusterName(cell);
    const owner = await owners.find(cluster);
    if (owner !== undefined && !owner.isKept)
      throw new ConfigError(
        'e2e.cell',
        `process ${owner.pid} runs ${cell.id}: end it, and it removes ${cluster} itself`,
      );
    print(there.delete(cluster) ? `removing ${cluster}` : `${cluster} is not there`);
    // Also where it is not there: containers beside it may be.
    await tearDown(shell, { cluster, owners }, signal);
  }
  for (const cluster of there) {
    if ((await owners.find(cluster)) !== undefined) continue;
    print(`removing ${cluster}, which an earlier run left`);
    await tearDown(shell, { cluster, owners }, signal);
  }
}
