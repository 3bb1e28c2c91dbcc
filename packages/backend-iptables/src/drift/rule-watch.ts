import type { Clock, Drift, Logger, Millis } from '@switchyard/core';
import { watchTables } from '@switchyard/native';
import type { Change } from '../apply/change.ts';
import type { IptablesClient } from '../client/iptables-client.ts';
import { type KnownKernel, LegacyLook } from './legacy-look.ts';
import type { OwnProcesses } from './own-processes.ts';
import { RuleNotes } from './rule-notes.ts';
import type { Suspects } from './suspects.ts';
import { watchLegacy } from './watch-legacy.ts';

/** What is watched, and who is told. */
export interface RuleWatchOptions {
  readonly client: Pick<IptablesClient, 'ipFamily' | 'variant'>;
  readonly known: KnownKernel;
  readonly suspects: Suspects;
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

  /** Reports until aborted. Chains are suspects by then. Rejects with `HostError`. */
  run(report: (drift: Drift) => void, signal: AbortSignal): Promise<void> {
    const { client, suspects, own, netns, clock, logger, period } = this.#options;
    const { ipFamily, variant } = client;
    if (variant === 'legacy') {
      return watchLegacy({ ipFamily, look: this.#look, suspects, clock, logger, period }, report, signal);
    }
    return watchTables({ netns, clock, notes: new RuleNotes({ ipFamily, own, suspects }) }, report, signal);
  }
}
