import { type Clock, type IpFamily, type Logger, type Millis, millis } from '@switchyard/core';
import { type Drift } from '@switchyard/core/engine';
import type { ChainDifference } from '../kernel/compare-states.ts';
import type { LegacyLook } from './legacy-look.ts';
import { tableText } from '../kernel/our-chains.ts';
import type { ForeignChanges } from './rule-notes.ts';

/** Maximum share of one core that looking takes. */
const maxShare = 0.02;
/** Maximum number of changes listed in a report; further ones are counted. */
const maxListed = 5;

/** Interval and family of the looks. */
export interface LegacyWatchOptions {
  readonly ipFamily: IpFamily;
  readonly look: Pick<LegacyLook, 'compare'>;
  readonly foreign: ForeignChanges;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Time from the end of a look to the next one; longer where that would exceed the share. */
  readonly period: Millis;
}

/**
 * Polls the legacy tables until aborted, because the kernel sends no notices for them. Rejects with `HostError` when they cannot be
 * read.
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
    .slice(0, maxListed)
    .map(({ table, chain, what }) => `chain ${chain} ${what} (table ${tableText(ipFamily, table)})`);
  const more = differences.length - words.length;
  return more > 0 ? [...words, `and ${more} more`] : words;
}
