import { cidrContains, type ForwardingTable, type ServiceForwarding } from '@switchyard/core';
import type { MapSet } from '../kernel.ts';
import { offsetOf, sizeOf } from '../../render/layouts.ts';
import {
  type ConfigurationConstants,
  encodeConfiguration,
  planWrites,
  type WordWrite,
  wordCount,
} from '../../render/settings/configuration.ts';
import { firstAddressBytes, prefixBits } from '../../render/settings/address-bytes.ts';
import { type MapElement, SmallMapWatch, writeElements } from '../small-map.ts';

/** Maps of the settings, and the settings that no table has. */
export interface SettingsOptions extends Pick<ConfigurationConstants, 'udpSticky'> {
  /** Cookie of the host network namespace; read with the first apply. */
  readonly hostNetns: () => bigint;
  readonly maps: () => Pick<MapSet, 'configuration' | 'pod_cidrs'>;
}

export type SettingsOfTable = Pick<ForwardingTable, 'serviceCidrs' | 'podDetector' | 'services'>;

/** Writes the settings of a forwarding table that belong to no service and no address: `configuration` and `pod_cidrs`. */
export class Settings {
  readonly #options: SettingsOptions;
  #table: SettingsOfTable | undefined;
  /** A Service has a cluster IP in no service CIDR. Stays true after the Service's deletion, until the next `apply`. */
  #hasClusterIpsElsewhere = false;
  readonly #podCidrs = new SmallMapWatch();
  /** Words of `configuration` that the last look found right; undefined after a write. */
  #right: BigUint64Array | undefined;

  constructor(options: SettingsOptions) {
    this.#options = options;
  }

  /** Writes the differences from the maps' content; returns writes. Must precede the attachment of programs. Throws `NativeError`. */
  apply(table: SettingsOfTable): number {
    this.#table = table;
    this.#podCidrs.forget();
    this.#hasClusterIpsElsewhere = isAnyElsewhere(table.services.values(), table);
    return this.#writeConfiguration(table) + writeElements(this.#options.maps().pod_cidrs, podCidrsOf(table));
  }

  /** Writes the settings that these Services need; must precede their write. Returns writes. Throws `NativeError`. */
  applyServices(upserted: readonly ServiceForwarding[]): number {
    const table = this.#table;
    if (table === undefined || this.#hasClusterIpsElsewhere || !isAnyElsewhere(upserted, table)) return 0;
    this.#hasClusterIpsElsewhere = true;
    return this.#writeConfiguration(table);
  }

  /** Descriptions of differences from the last `apply`. */
  findDamage(): readonly string[] {
    const table = this.#table;
    if (table === undefined) return [];
    const isPodCidrsRight = this.#podCidrs.holds(this.#options.maps().pod_cidrs, () => podCidrsOf(table));
    return [
      ...(this.#isConfigurationRight(table) ? [] : ['map configuration edited']),
      ...(isPodCidrsRight ? [] : ['map pod_cidrs edited']),
    ];
  }

  #isConfigurationRight(table: SettingsOfTable): boolean {
    const current = wordsOf(this.#options.maps().configuration);
    if (this.#right?.every((word, index) => word === current[index]) === true) return true;
    const isRight = this.#writesFor(table, current).length === 0;
    this.#right = isRight ? current.slice() : undefined;
    return isRight;
  }

  #writeConfiguration(table: SettingsOfTable): number {
    this.#right = undefined;
    const current = wordsOf(this.#options.maps().configuration);
    const writes = this.#writesFor(table, current);
    for (const { word, value } of writes) Atomics.store(current, word, value);
    return writes.length;
  }

  #writesFor({ serviceCidrs, podDetector }: SettingsOfTable, current: BigUint64Array): readonly WordWrite[] {
    const { hostNetns, udpSticky } = this.#options;
    const hasPodDetector = podDetector.kind !== 'none';
    const settings = { serviceCidrs, hasPodDetector, hasClusterIpsElsewhere: this.#hasClusterIpsElsewhere };
    return planWrites(current, encodeConfiguration({ hostNetns: hostNetns(), udpSticky }, settings, current));
  }
}

/** Whether one of these Services has a cluster IP outside of all service CIDRs. */
function isAnyElsewhere(services: Iterable<ServiceForwarding>, { serviceCidrs }: SettingsOfTable): boolean {
  for (const { frontends } of services) {
    for (const { kind, address } of frontends) {
      if (kind !== 'clusterIP' || address === 'anyNodePortAddress') continue;
      if (!serviceCidrs.some((cidr) => cidrContains(cidr, address))) return true;
    }
  }
  return false;
}

/** CIDRs of pods as elements of `pod_cidrs`; none where pods are detected by interface. */
function podCidrsOf({ podDetector }: SettingsOfTable): readonly MapElement[] {
  if (podDetector.kind !== 'cidr') return [];
  const key = new Uint8Array(sizeOf('pod_cidr_key'));
  new DataView(key.buffer).setUint32(offsetOf('pod_cidr_key', 'prefix_length'), prefixBits(podDetector.cidr), true);
  key.set(firstAddressBytes(podDetector.cidr), offsetOf('pod_cidr_key', 'address'));
  return [[key, Uint8Array.of(1)]]; // the key alone counts
}

function wordsOf(configuration: MapSet['configuration']): BigUint64Array {
  const bytes = configuration.values();
  return new BigUint64Array(bytes.buffer, bytes.byteOffset, wordCount);
}
