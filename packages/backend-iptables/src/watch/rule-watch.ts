import type { Clock, Logger, Millis } from '@switchyard/core';
import type { Drift } from '@switchyard/core/engine';
import { watchTables } from '@switchyard/netfilter';
import type { IptablesClient } from '../kernel/client/iptables-client.ts';
import type { LegacyLook } from './legacy-look.ts';
import type { OwnProcesses } from './own-processes.ts';
import { type ForeignChanges, RuleNotes } from './rule-notes.ts';
import { watchLegacy } from './watch-legacy.ts';

/** Rules to watch, and the receiver of foreign changes. */
export interface RuleWatchOptions {
  readonly client: Pick<IptablesClient, 'ipFamily' | 'variant'>;
  readonly look: Pick<LegacyLook, 'compare'>;
  readonly foreign: ForeignChanges;
  /** The processes of the client. */
  readonly own: OwnProcesses;
  /** As for `IptablesHost.netns`. */
  readonly netns?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Minimum time between two looks at legacy tables. */
  readonly period: Millis;
}

/**
 * Reports foreign changes to the rules of one family until aborted: from kernel notices with the nft variant, by polling with
 * legacy. Notes the changed chains in `foreign` before each report. Rejects with `HostError`.
 */
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
