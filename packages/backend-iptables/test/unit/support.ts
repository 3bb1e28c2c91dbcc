import { type ApplyOutcome } from '@switchyard/core/engine';
import {
  type Clock,
  diffTables,
  type ForwardingTable,
  type IpFamily,
  type Logger,
  millis,
  noopLogger,
  seconds,
} from '@switchyard/core';
import type { IptablesVariant } from '@switchyard/netfilter/iptables';
import { IptablesBackend } from '../../src/backend.ts';
import { openIptablesClient } from '../../src/testing/open-client.ts';
import { FakeIptables } from '../../src/testing/index.ts';

export const { signal } = new AbortController();

/** Waits for nothing. */
const impatientClock: Clock = { now: () => millis(0), monotonic: () => millis(0), sleep: () => Promise.resolve() };

/** How a backend is driven. */
export interface DrivenOptions {
  readonly variant?: IptablesVariant;
  readonly ipFamily?: IpFamily;
  readonly iptables?: FakeIptables;
  readonly logger?: Logger;
  readonly clock?: Clock;
}

/** A backend over a fake, and the last table given to it. */
export class Driven {
  readonly iptables: FakeIptables;
  readonly backend: IptablesBackend;
  readonly variant: IptablesVariant;
  uptime = 100_000;
  #last: ForwardingTable | undefined;

  private constructor(iptables: FakeIptables, variant: IptablesVariant, backend: (self: Driven) => IptablesBackend) {
    this.iptables = iptables;
    this.variant = variant;
    this.backend = backend(this);
  }

  static async open(options: DrivenOptions = {}): Promise<Driven> {
    const { variant = 'nft', ipFamily = 'IPv4', iptables = new FakeIptables() } = options;
    const client = await openIptablesClient({ runner: iptables, ipFamily, variant }, signal);
    const choices = { masqueradeMark: 0x4000, dropInvalid: true, randomFully: true, nfacct: false };
    const { logger = noopLogger, clock = impatientClock } = options;
    const parts = { client, runner: iptables, logger, choices, clock, syncPeriod: seconds(30) };
    return new Driven(
      iptables,
      variant,
      (self) => new IptablesBackend({ ...parts, uptime: () => millis(self.uptime) }),
    );
  }

  full(table: ForwardingTable): Promise<ApplyOutcome> {
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'full' } }, signal);
  }

  next(table: ForwardingTable): Promise<ApplyOutcome> {
    const delta = diffTables(this.#last, table);
    this.#last = table;
    return this.backend.apply({ table, scope: { kind: 'delta', delta } }, signal);
  }

  dump(): Promise<string> {
    return this.backend.dump(signal);
  }

  /** Lines of the last restore. */
  get lines(): readonly string[] {
    return (this.iptables.restores.at(-1)?.text ?? '').trimEnd().split('\n');
  }

  save(): string {
    return this.iptables.save(this.backend.ipFamily, this.variant);
  }
}
