import { type Clock, type Drift, type Logger, type Millis, millis } from '@switchyard/core';
import type { TableName } from '../chains.ts';
import type { Suspects } from './suspects.ts';

/** Reading takes at most this share of one core. */
const maxShare = 0.02;
/** While an apply is under way the look waits so long. */
const busyWait = millis(1000);
/** More than this is counted, not told. */
const maxTold = 5;

/** A chain that is not as we left it. */
export interface ChainDifference {
  readonly table: TableName;
  readonly chain: string;
  readonly what: 'missing' | 'added' | 'changed';
}

/** What we left in the kernel, and how to look. */
export interface LegacyDrift extends Suspects {
  /**
   * Changes whenever something of ours is written, or is about to be; undefined while that goes on, and while it is not
   * known what the kernel holds.
   */
  revision(): number | undefined;
  /** Reads every table and says which chains are not as we left them. Rejects with `HostError`. */
  compare(signal: AbortSignal): Promise<readonly ChainDifference[]>;
}

/** How often, and whose. */
export interface LegacyWatchOptions {
  readonly drift: LegacyDrift;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Time between the end of a look and the next one; more where a look takes more than its share of it. */
  readonly period: Millis;
  /** Such as `ip nat`. */
  readonly tableText: (table: TableName) => string;
}

/**
 * Looks at the legacy tables from time to time until aborted, because their kernel tells nobody of changes. What an apply
 * changed meanwhile is not taken for drift: such a look does not count. Rejects with `HostError` when the tables cannot be read.
 */
export async function watchLegacy(
  options: LegacyWatchOptions,
  report: (drift: Drift) => void,
  signal: AbortSignal,
): Promise<void> {
  const { drift, clock, logger, period, tableText } = options;
  let wait: Millis = period;
  while (!signal.aborted) {
    await clock.sleep(wait, signal).catch(ignoreAbort(signal));
    if (signal.aborted) return;
    const before = drift.revision();
    if (before === undefined) {
      wait = millis(Math.min(busyWait, period));
      continue;
    }
    const start = clock.monotonic();
    const differences = await drift.compare(signal);
    const durationMs = clock.monotonic() - start;
    wait = millis(Math.max(period, durationMs / maxShare));
    logger.trace('looked for foreign changes', { durationMs, waitMs: wait, chains: differences.length });
    if (drift.revision() !== before || differences.length === 0) continue;
    for (const { table, chain } of differences) drift.suspect(table, chain);
    report({ kind: 'chain', changes: wordsOf(differences, tableText), process: undefined });
  }
}

function wordsOf(differences: readonly ChainDifference[], tableText: (table: TableName) => string): readonly string[] {
  const words = differences
    .slice(0, maxTold)
    .map(({ table, chain, what }) => `chain ${chain} ${what} (table ${tableText(table)})`);
  const more = differences.length - words.length;
  return more > 0 ? [...words, `and ${more} more`] : words;
}

function ignoreAbort(signal: AbortSignal): (error: unknown) => void {
  return (error) => {
    if (!signal.aborted) throw error;
  };
}
