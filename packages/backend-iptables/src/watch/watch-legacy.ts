import { type Clock, type IpFamily, type Logger, type Millis, millis } from '@switchyard/core';
import { type Drift } from '@switchyard/core/engine';
import type { ChainDifference } from '../kernel/compare-states.ts';
import type { LegacyLook } from './legacy-look.ts';
import { tableText } from '../kernel/our-chains.ts';
import type { ForeignChanges } from './rule-notes.ts';

/** Looking takes at most this share of one core. */
const maxShare = 0.02;
/** More than this is counted, not told. */
const maxTold = 5;

/** How often, and whose. */
export interface LegacyWatchOptions {
  readonly ipFamily: IpFamily;
  readonly look: Pick<LegacyLook, 'compare'>;
  readonly foreign: ForeignChanges;
  readonly clock: Clock;
  readonly logger: Logger;
  /** From the end of a look to the next one; longer where that would cost more than its share. */
  readonly period: Millis;
}

/**
 * Looks at the legacy tables from time to time until aborted, because their kernel tells nobody of changes. Rejects with `HostError`
 * when they cannot be read.
 */
export async function watchLegacy(
  options: LegacyWatchOptions,
  report: (drift: Drift) => void,
  signal: AbortSignal,
): Promise<void> {
  const { look, foreign, clock, logger, period, ipFamily } = options;
  let waitMs: Millis = period;
  while (!signal.aborted) {
    try {
      await clock.sleep(waitMs, signal);
      const start = clock.monotonic();
      const differences = (await look.compare(signal)) ?? [];
      const durationMs = clock.monotonic() - start;
      waitMs = millis(Math.max(period, durationMs / maxShare));
      logger.trace('looked for foreign changes', { ipFamily, durationMs, waitMs, chains: differences.length });
      if (differences.length === 0) continue;
      for (const { table, chain } of differences) foreign.noteChain({ table, name: chain });
      report({ kind: 'chain', changes: wordsOf(differences, ipFamily), process: undefined });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

function wordsOf(differences: readonly ChainDifference[], ipFamily: IpFamily): readonly string[] {
  const words = differences
    .slice(0, maxTold)
    .map(({ table, chain, what }) => `chain ${chain} ${what} (table ${tableText(ipFamily, table)})`);
  const more = differences.length - words.length;
  return more > 0 ? [...words, `and ${more} more`] : words;
}
