import { type IpAddress, type IpFamily, ipFromBytes } from '@switchyard/core';
import { addressFamilies, DeviceReader } from './device-reader.ts';
import { openNetlinkSocket } from '../netlink-socket.ts';

/** The node whose addresses are read. */
export interface LocalAddressOptions {
  readonly ipFamily: IpFamily;
  /** Path of the network namespace; default: the process's own. */
  readonly netns?: string | undefined;
}

/** Where an address of a family begins in 16 bytes. */
const firstByte: Readonly<Record<IpFamily, number>> = { IPv4: 12, IPv6: 0 };

/** Addresses of all interfaces that are up, loopback included, each once, in order. Throws `HostError`, or `NativeMissingError`. */
export function localAddresses({ ipFamily, netns }: LocalAddressOptions): readonly IpAddress[] {
  using socket = openNetlinkSocket({ protocol: 'route', netns });
  const reader = new DeviceReader(socket);
  const up = new Set(reader.devices().flatMap(({ index, isUp }) => (isUp ? [index] : [])));
  const found = reader.addresses(addressFamilies[ipFamily]).filter(({ device, isInUse }) => isInUse && up.has(device));
  return [...new Set(found.map(({ address }) => ipFromBytes(address.subarray(firstByte[ipFamily]))))];
}
