import { dryShell, plainShell } from './run/shell.ts';
import type { Session } from './session.ts';
import { ourClusters, tearDown } from './steps/tear-down.ts';

/** Removes every cluster of e2e runs, whoever owns it, with all that belongs to it. */
export async function clean({ options, surroundings, owners }: Session, signal: AbortSignal): Promise<void> {
  const { print, runner } = surroundings;
  const shell = options.isDry ? dryShell(print) : plainShell(runner);
  const clusters = await ourClusters(shell, signal);
  for (const cluster of clusters) {
    print(`removing ${cluster}`);
    await tearDown(shell, { cluster, owners }, signal);
  }
  print(`${clusters.length} clusters of e2e runs were there`);
}
