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
import { holdsElements, type MapElement, writeElements } from '../small-map.ts';

/** What settings are written to, and what of them no table says. */
export interface SettingsOptions extends Pick<ConfigurationConstants, 'udpSticky'> {
  /** Cookie of the host network namespace; asked for when it is needed. */
  readonly hostNetns: () => bigint;
  /** The maps at this moment: they are exchanged when they grow. */
  readonly maps: () => Pick<MapSet, 'configuration' | 'pod_cidrs'>;
}

/** The part of a forwarding table that is written here. */
export type SettingsOfTable = Pick<ForwardingTable, 'serviceCidrs' | 'podDetector' | 'services'>;

/** What of a forwarding table belongs to no service and no address: `configuration` and `pod_cidrs`. */
export class Settings {
  readonly #options: SettingsOptions;
  /** What the last `apply` wrote for. */
  #table: SettingsOfTable | undefined;
  /** Since then a Service came whose cluster IP is in no service CIDR; when it goes, that stays so until the next `apply`. */
  #hasClusterIpsElsewhere = false;

  constructor(options: SettingsOptions) {
    this.#options = options;
  }

  /** Writes what differs from what is in the maps; returns writes. To be called before the programs are attached. Throws `NativeError`. */
  apply(table: SettingsOfTable): number {
    this.#table = table;
    this.#hasClusterIpsElsewhere = isAnyElsewhere(table.services.values(), table);
    return this.#writeConfiguration(table) + writeElements(this.#options.maps().pod_cidrs, podCidrsOf(table));
  }

  /** Writes what these Services need, before they are written; returns writes. Throws `NativeError`. */
  applyServices(upserted: readonly ServiceForwarding[]): number {
    const table = this.#table;
    if (table === undefined || this.#hasClusterIpsElsewhere || !isAnyElsewhere(upserted, table)) return 0;
    this.#hasClusterIpsElsewhere = true;
    return this.#writeConfiguration(table);
  }

  /** What is not as the last `apply` left it, in words. */
  findDamage(): readonly string[] {
    if (this.#table === undefined) return [];
    const { configuration, pod_cidrs } = this.#options.maps();
    const current = wordsOf(configuration);
    return [
      ...(this.#writesFor(this.#table, current).length > 0 ? ['map configuration edited'] : []),
      ...(holdsElements(pod_cidrs, podCidrsOf(this.#table)) ? [] : ['map pod_cidrs edited']),
    ];
  }

  #writeConfiguration(table: SettingsOfTable): number {
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

/**
 * The CIDRs whose addresses are pods', as elements of `pod_cidrs`. Where pods are detected by interface there is none: their devices
 * have no program unless an operator names them, and packets by those count as from outside.
 */
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
