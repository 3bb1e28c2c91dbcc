import type { Clock, Logger, Millis } from '@switchyard/core';
import type { Drift } from '@switchyard/core/engine';
import { watchTables } from '@switchyard/netfilter';
import type { Change } from '../kernel/apply/change.ts';
import type { IptablesClient } from '../kernel/client/iptables-client.ts';
import { type KnownKernel, LegacyLook } from './legacy-look.ts';
import type { OwnProcesses } from './own-processes.ts';
import { RuleNotes } from './rule-notes.ts';
import type { ForeignChanges } from './foreign-changes.ts';
import { watchLegacy } from './watch-legacy.ts';

/** What is watched, and who is told. */
export interface RuleWatchOptions {
  readonly client: Pick<IptablesClient, 'ipFamily' | 'variant'>;
  readonly known: KnownKernel;
  readonly foreign: ForeignChanges;
  /** The processes of the client. */
  readonly own: OwnProcesses;
  /** As for `IptablesHost.netns`. */
  readonly netns?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Least time between two looks at legacy tables. */
  readonly period: Millis;
}

/** Notices what others do to the rules of one family: told by the kernel with the nft variant, by looking with legacy. */
export class RuleWatch {
  readonly #options: RuleWatchOptions;
  readonly #look: LegacyLook;

  constructor(options: RuleWatchOptions) {
    this.#options = options;
    this.#look = new LegacyLook(options.known);
  }

  /** An apply is under way until the result is disposed. */
  applying(): Disposable {
    return this.#look.applying();
  }

  /** To be told of whatever is written. */
  noteWritten(change: Change): void {
    this.#look.noteWritten(change);
  }

  /** Reports until aborted. The changed chains are noted by then. Rejects with `HostError`. */
  run(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const { client, foreign, own, netns, clock, logger, period } = this.#options;
    const { ipFamily, variant } = client;
    if (variant === 'legacy') {
      return watchLegacy({ ipFamily, look: this.#look, foreign, clock, logger, period }, report, signal);
    }
    return watchTables({ netns, clock, notes: new RuleNotes({ ipFamily, own, foreign }) }, report, signal);
  }
}
