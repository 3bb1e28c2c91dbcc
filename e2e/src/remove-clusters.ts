import { ConfigError } from '@switchyard/core';
import { clusterName } from './cluster-name.ts';
import { chosenCells, type Session } from './session.ts';
import { ourClusters, tearDown } from './steps/tear-down.ts';

/** Removes every cluster of e2e runs of any owner, with everything that belongs to it. */
export async function clean({ surroundings, owners, shell }: Session, signal: AbortSignal): Promise<void> {
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
export async function down(
  { options, expanded, surroundings, owners, shell }: Session,
  signal: AbortSignal,
): Promise<void> {
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
