import { type Clock, type IpFamily, type Logger, type Millis, millis } from '@switchyard/core';
import type { Drift } from '@switchyard/core/engine';
import type { ChainDifference } from '../kernel/compare-states.ts';
import type { LegacyLook } from './legacy-look.ts';
import { tableText } from '../kernel/our-chains.ts';
import { type ForeignChanges, RuleNotes } from './rule-notes.ts';
import { watchTables } from '@switchyard/netfilter';
import type { IptablesClient } from '../kernel/client/iptables-client.ts';
import type { OwnProcesses } from './own-processes.ts';

/** Maximum share of one core that looking takes. */
const maxShare = 0.02;
/** Maximum number of changes listed in a report; further ones are counted. */
const maxListed = 5;

export interface LegacyWatchOptions {
  readonly ipFamily: IpFamily;
  readonly look: Pick<LegacyLook, 'compare'>;
  readonly foreign: ForeignChanges;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Time from the end of a look to the next one; longer where that would exceed the share. */
  readonly period: Millis;
}

/** Polls the legacy tables until aborted: the kernel sends no notices for them. Rejects with `HostError`. */
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

export interface RuleWatchOptions {
  readonly client: Pick<IptablesClient, 'ipFamily' | 'variant'>;
  readonly look: Pick<LegacyLook, 'compare'>;
  readonly foreign: ForeignChanges;
  /** The processes of the client. */
  readonly own: OwnProcesses;
  readonly netns?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Minimum time between two looks at legacy tables. */
  readonly period: Millis;
}

/** Reports foreign changes until aborted, and notes their chains in `foreign` before. Rejects with `HostError`. */
export function watchRules(
  options: RuleWatchOptions,
  report: (drift: Drift) => void,
  signal: AbortSignal,
): Promise<void> {
  const { client, netns, clock } = options;
  const { ipFamily, variant } = client;
  if (variant === 'legacy') return watchLegacy({ ...options, ipFamily }, report, signal);
  return watchTables({ netns, clock, notes: new RuleNotes({ ...options, ipFamily }) }, report, signal);
}
