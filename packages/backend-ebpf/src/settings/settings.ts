import type { ForwardingTable } from '@switchyard/core';
import type { MapSet } from '../kernel/kernel.ts';
import {
  type ConfigurationConstants,
  type ConfiguredSettings,
  encodeConfiguration,
  planWrites,
  wordCount,
} from './configuration.ts';
import { hasPodCidrs, podCidrsOf, writePodCidrs } from './pod-cidrs.ts';

/** What settings are written to, and what of them no table says. */
export interface SettingsOptions extends ConfigurationConstants {
  /** The maps at this moment: they are exchanged when they grow. */
  readonly maps: () => Pick<MapSet, 'configuration' | 'pod_cidrs'>;
}

/** The part of a forwarding table that is written here. */
export type SettingsOfTable = Pick<ForwardingTable, 'serviceCidrs' | 'podDetector'>;

/** What of a forwarding table belongs to no service and no address: `configuration` and `pod_cidrs`. */
export class Settings {
  readonly #options: SettingsOptions;
  /** What the last `apply` wrote for. */
  #table: SettingsOfTable | undefined;

  constructor(options: SettingsOptions) {
    this.#options = options;
  }

  /** Writes what differs from what is in the maps; returns writes. To be called before the programs are attached. Throws `NativeError`. */
  apply(table: SettingsOfTable): number {
    this.#table = table;
    const { configuration, pod_cidrs } = this.#options.maps();
    const current = wordsOf(configuration);
    const writes = planWrites(current, encodeConfiguration(this.#options, configuredOf(table), current));
    for (const { word, value } of writes) Atomics.store(current, word, value);
    return writes.length + writePodCidrs(pod_cidrs, podCidrsOf(table));
  }

  /** What is not as the last `apply` left it, in words. */
  findDamage(): readonly string[] {
    if (this.#table === undefined) return [];
    const { configuration, pod_cidrs } = this.#options.maps();
    const current = wordsOf(configuration);
    const wanted = encodeConfiguration(this.#options, configuredOf(this.#table), current);
    return [
      ...(planWrites(current, wanted).length > 0 ? ['map configuration edited'] : []),
      ...(hasPodCidrs(pod_cidrs, podCidrsOf(this.#table)) ? [] : ['map pod_cidrs edited']),
    ];
  }
}

function configuredOf({ serviceCidrs, podDetector }: SettingsOfTable): ConfiguredSettings {
  return { serviceCidrs, hasPodDetector: podDetector.kind !== 'none' };
}

function wordsOf(configuration: MapSet['configuration']): BigUint64Array {
  const bytes = configuration.values();
  return new BigUint64Array(bytes.buffer, bytes.byteOffset, wordCount);
}
