import { type Clock, type Millis, millis, type ServicePortKey } from '@switchyard/core';
import { type CountedTotal, type ServiceCounters, ServiceCounts } from '@switchyard/core/engine';
import { type Change, chainKey, chainsOfRules, entryKey } from './apply/change.ts';
import type { OwnedEntry } from './apply/entry-owners.ts';
import { chainNames } from '../render/names.ts';
import type { IptablesClient } from './client/iptables-client.ts';

/** What is counted, and by whom it is read. */
export interface RuleCountersOptions {
  readonly client: Pick<IptablesClient, 'list'>;
  readonly clock: Clock;
  /** The rules of Services in chains that many share; also of those of which something was refused. */
  entries(): Iterable<OwnedEntry>;
}

/** Reading takes at most this share of one core: so long the last reading is served again. */
const maxShare = 0.02;

const accepted: readonly CountedTotal[] = ['connections'];
const sourceRange: readonly CountedTotal[] = ['sourceRange'];
const noEndpoints: readonly CountedTotal[] = ['connections', 'noEndpoints'];
const noLocalEndpoint: readonly CountedTotal[] = ['noLocalEndpoint'];
const noLocalEndpointInside: readonly CountedTotal[] = ['connections', 'noLocalEndpoint'];

/**
 * Counters of Services out of those of rules in the chains that all share. The nat table meets the first packet of each
 * connection, and once; what is refused for want of endpoints has no rule there and is counted where it is refused.
 */
export class RuleCounters {
  readonly #options: RuleCountersOptions;
  readonly #counts = new ServiceCounts();
  /** No reading before (monotonic). */
  #next: Millis = millis(0);

  constructor(options: RuleCountersOptions) {
    this.#options = options;
  }

  /** To be told of whatever is written: a rule that is deleted and comes back counts from 0. */
  noteWritten(change: Change): void {
    const { table } = change;
    switch (change.kind) {
      case 'delete':
      case 'move':
        return this.#counts.noteDeleted(entryKey(change));
      case 'list':
      case 'remove':
        return this.#counts.noteAllDeleted((id) => id.startsWith(`${chainKey(table, change.name)} `));
    }
  }

  /** Totals of all Services; those of the last reading where the next one would cost too much. Rejects with `HostError`. */
  async read(signal: AbortSignal): Promise<ReadonlyMap<ServicePortKey, ServiceCounters>> {
    const { clock } = this.#options;
    const start = clock.monotonic();
    if (start < this.#next) return this.#counts.latest;
    this.#counts.beginReading();
    const reading = await this.#readRules(signal);
    const end = clock.monotonic();
    this.#next = millis(end + (end - start) / maxShare);
    return this.#counts.update({
      services: this.#options.entries(),
      reading,
      keyOf: ({ key }) => key,
      visit: (entry, count) => count(entryKey(entry), totalsOf(entry)),
      isKnown: () => false,
    });
  }

  async #readRules(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const reading = new Map<string, number>();
    // Only chains in which Services have rules: most nodes refuse nothing.
    for (const { table, name } of chainsOfRules(this.#options.entries())) {
      const rules = await this.#options.client.list(table, name, signal);
      for (const { rule, packets } of rules ?? []) {
        if (packets === 0) continue;
        const id = entryKey({ table, chain: name, rule });
        reading.set(id, (reading.get(id) ?? 0) + packets);
      }
    }
    return reading;
  }
}

function totalsOf({ table, chain, rule }: OwnedEntry): readonly CountedTotal[] {
  if (table === 'nat') return accepted;
  if (chain === chainNames.proxyFirewall) return sourceRange; // it came by a rule of the nat table
  if (/ -j REJECT\b/.test(rule)) return noEndpoints;
  // From outside it came by a rule of the nat table, which lets pods and the node itself through.
  return chain === chainNames.services ? noLocalEndpointInside : noLocalEndpoint;
}
