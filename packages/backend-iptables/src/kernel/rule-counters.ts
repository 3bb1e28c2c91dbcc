import { type Clock, type Millis, millis, type ServicePortKey } from '@switchyard/core';
import { type CountedTotal, type ServiceCounters, ServiceCounts } from '@switchyard/core/engine';
import { type Change, chainKey, chainsOfRules, entryKey } from './apply/change.ts';
import type { OwnedEntry } from './apply/entry-owners.ts';
import { chainNames } from '../render/names.ts';
import type { IptablesClient } from './client/iptables-client.ts';

export interface RuleCountersOptions {
  readonly client: Pick<IptablesClient, 'list'>;
  readonly clock: Clock;
  /** Rules of Services in shared chains, refused Services included. */
  entries(): Iterable<OwnedEntry>;
}

/** Maximum share of one core that reading takes. Until then, the last reading is returned again. */
const maxShare = 0.02;

const accepted: readonly CountedTotal[] = ['connections'];
const sourceRange: readonly CountedTotal[] = ['sourceRange'];
const noEndpoints: readonly CountedTotal[] = ['connections', 'noEndpoints'];
const noLocalEndpoint: readonly CountedTotal[] = ['noLocalEndpoint'];
const noLocalEndpointInside: readonly CountedTotal[] = ['connections', 'noLocalEndpoint'];

/** Counters from rules in shared chains. The nat table sees first packets only; refused ones have rules of their own. */
export class RuleCounters {
  readonly #options: RuleCountersOptions;
  readonly #counts = new ServiceCounts();
  /** Earliest time of the next reading (monotonic). */
  #next: Millis = millis(0);

  constructor(options: RuleCountersOptions) {
    this.#options = options;
  }

  /** Records a written change: a rule that is deleted and inserted again counts from 0. */
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
  if (chain === chainNames.proxyFirewall) return sourceRange; // a rule of the nat table has counted the connection
  if (/ -j REJECT\b/.test(rule)) return noEndpoints;
  // A rule of the nat table has counted connections from outside, but not those of pods and of the node.
  return chain === chainNames.services ? noLocalEndpointInside : noLocalEndpoint;
}
