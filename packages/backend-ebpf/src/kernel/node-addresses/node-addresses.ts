import {
  type Cidr,
  cidrContains,
  type Clock,
  type ForwardingTable,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  loopbackOf,
  millis,
  parseCidr,
} from '@switchyard/core';
import { addressChanges, localAddresses } from '@switchyard/native';
import type { MapSet } from '../kernel.ts';
import { addressBytes } from '../../render/settings/address-bytes.ts';
import { type MapElement, SmallMapWatch, writeElements } from '../small-map.ts';
import { nodeAddressFlags } from '../../render/layouts.ts';

export type AddressesOfTable = Pick<ForwardingTable, 'nodePortCidrs'>;

export interface NodeAddressesOptions {
  readonly ipFamily: IpFamily;
  /** The current maps. Growth replaces them. */
  readonly maps: () => Pick<MapSet, 'node_addresses'>;
  readonly clock: Clock;
  readonly netns?: string | undefined;
  /** For tests; default: reads them from the kernel. */
  readonly read?: () => readonly IpAddress[];
}

/** A new address is in the map after this and one listing (0.4 ms). Waking up costs 0.2 ms of CPU on a busy machine. */
const interval = millis(100);

/** Keeps `node_addresses` equal to the node's addresses. */
export class NodeAddresses {
  readonly #options: NodeAddressesOptions;
  readonly #read: () => readonly IpAddress[];
  /** Of the last `apply`. */
  #table: AddressesOfTable | undefined;
  /** Elements of the last write. */
  #written: readonly MapElement[] = [];
  readonly #watch = new SmallMapWatch();

  constructor(options: NodeAddressesOptions) {
    const { ipFamily, netns, read } = options;
    this.#options = options;
    this.#read = read ?? (() => localAddresses({ ipFamily, netns }));
  }

  /** Writes the differences from the map's content; returns writes. Throws `NativeError`. */
  apply(table: AddressesOfTable): number {
    this.#table = table;
    return this.#write();
  }

  /** Follows the kernel until aborted and writes changes, from the first `apply` on. Rejects with `NativeError`. */
  async follow(signal: AbortSignal): Promise<void> {
    const { clock, netns } = this.#options;
    const options = { clock, interval, netns };
    for await (const _ of addressChanges(options, signal)) this.#write();
  }

  /** Descriptions of differences from the last write. */
  findDamage(): readonly string[] {
    if (this.#table === undefined) return [];
    return this.#watch.holds(this.#options.maps().node_addresses, () => this.#written)
      ? []
      : ['map node_addresses edited'];
  }

  #write(): number {
    if (this.#table === undefined) return 0;
    const wanted = Array.from(addressFlags(this.#read(), this.#table), ([ip, flags]): MapElement => [
      addressBytes(ip),
      Uint8Array.of(flags, 0, 0, 0),
    ]);
    const writes = writeElements(this.#options.maps().node_addresses, wanted);
    this.#written = wanted;
    this.#watch.forget();
    return writes;
  }
}

const linkLocal: Cidr = parseCidr('fe80::/10');

/** Local addresses except loopback and link-local IPv6 ones, with a flag for NodePort addresses. */
export function addressFlags(
  local: readonly IpAddress[],
  { nodePortCidrs }: Pick<ForwardingTable, 'nodePortCidrs'>,
): ReadonlyMap<IpAddress, number> {
  const isLeftOut = (ip: IpAddress): boolean =>
    cidrContains(loopbackOf(ipFamilyOf(ip)), ip) || cidrContains(linkLocal, ip);
  const flagsOf = (ip: IpAddress): number =>
    nodePortCidrs.some((cidr) => cidrContains(cidr, ip)) ? nodeAddressFlags.nodePort : 0;
  return new Map(local.filter((ip) => !isLeftOut(ip)).map((ip) => [ip, flagsOf(ip)]));
}
