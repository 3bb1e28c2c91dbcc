import { type Clock, ConfigError, isExpected, messageOf } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';
import { listJson, listText } from './list/cell-list.ts';
import type { MachineFacts } from './list/obstacles.ts';
import { parseOptions, usage } from './options.ts';
import { clean, down } from './remove-clusters.ts';
import { exitStatus, summaryLines } from './run/outcome.ts';
import { runCells } from './run/run-cells.ts';
import { listedCells, openSession } from './session.ts';

/** Environment of the program. */
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
