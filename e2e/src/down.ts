import { ConfigError } from '@switchyard/core';
import { clusterName } from './cluster-name.ts';
import { dryShell, plainShell } from './run/shell.ts';
import { chosenCells, type Session } from './session.ts';
import { ourClusters, tearDown } from './steps/tear-down.ts';

/**
 * Removes the clusters of the chosen cells with all that belongs to them, and the clusters that killed runs left. Throws `ConfigError` for a cell
 * that a living process runs; its cluster stays.
 */
export async function down({ options, expanded, surroundings, owners }: Session, signal: AbortSignal): Promise<void> {
  const { print, runner } = surroundings;
  const shell = options.isDry ? dryShell(print) : plainShell(runner);
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
