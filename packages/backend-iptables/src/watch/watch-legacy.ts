import { type Clock, type IpFamily, type Logger, type Millis, millis } from '@switchyard/core';
import type { Drift } from '@switchyard/core/engine';
import type { LegacyLook } from './legacy-look.ts';
import { tableText } from '../kernel/our-chains.ts';
import { type ForeignChanges, RuleNotes } from './rule-notes.ts';
import { DriftTally, watchTables } from '@switchyard/netfilter';
import type { IptablesClient } from '../kernel/client/iptables-client.ts';
import type { OwnProcesses } from './own-processes.ts';

/** Maximum share of one core that looking takes. */
const maxShare = 0.02;

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
      const tally = new DriftTally();
      for (const { table, chain, what } of differences) {
        foreign.noteChain({ table, name: chain });
        tally.add('chain', `chain ${chain} ${what} (table ${tableText(ipFamily, table)})`);
      }
      report({ ...tally.summary(), process: undefined });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

export interface RuleWatchOptions extends LegacyWatchOptions {
  readonly variant: IptablesClient['variant'];
  /** The processes of the client. */
  readonly own: OwnProcesses;
  readonly netns?: string | undefined;
}

/** Reports foreign changes until aborted, and notes their chains in `foreign` before. Rejects with `HostError`. */
export function watchRules(
  options: RuleWatchOptions,
  report: (drift: Drift) => void,
  signal: AbortSignal,
): Promise<void> {
  const { netns, clock, variant } = options;
  if (variant === 'legacy') return watchLegacy(options, report, signal);
  return watchTables({ netns, clock, notes: new RuleNotes(options) }, report, signal);
}
