import type { IpFamily } from '@switchyard/core';
import { addressFamilies, type Device, type DeviceAddress, DeviceReader, openNetlinkSocket } from '@switchyard/native';

/** What of a network namespace decides where the program is attached and as whom packets are masqueraded. */
export interface Network {
  readonly devices: readonly Device[];
  /** Of one family, in the kernel's order. */
  readonly addresses: readonly DeviceAddress[];
  /** The device that leads to the rest of the world; undefined where none does. */
  readonly defaultDevice: number | undefined;
}

/**
 * Far away, and nobody's neighbour: what is asked for to learn where the default route leads. Listing routes instead could mean
 * to read a million of them. Nothing is sent there.
 */
const farAway: Readonly<Record<IpFamily, Uint8Array>> = {
  IPv4: Uint8Array.of(9, 9, 9, 9),
  IPv6: Uint8Array.of(0x26, 0x20, 0, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe),
};

/** Reads it; with 500 devices that takes some 15 ms on a busy machine. Throws `HostError`. */
export function readNetwork(family: IpFamily, netns: string | undefined): Network {
  using socket = openNetlinkSocket({ protocol: 'route', ...(netns === undefined ? {} : { netns }) });
  const reader = new DeviceReader(socket);
  return {
    devices: reader.devices(),
    addresses: reader.addresses(addressFamilies[family]),
    defaultDevice: reader.deviceTo(farAway[family]),
  };
}

/** By what uplinks are told. */
export interface UplinkRule {
  readonly ipFamily: IpFamily;
  /** Names, `*` for any characters; empty: see `chooseUplinks`. */
  readonly patterns: readonly string[];
  /** Whether an address of 16 bytes is one that pods may have. */
  readonly isPod: (address: Uint8Array) => boolean;
}

/**
 * The devices by which packets for Services come in from outside, by index.
 *
 * By patterns, those that match, loopback aside. Else the device of the default route, and all that have a global address with
 * a subnet that is not of pods, but for bridges: behind those are containers of this machine, which are reached by their
 * sockets. An address without a subnet (/32, /128) is one of a tunnel or of a gateway for pods.
 *
 * A bridge that leads to the world brings the port along whose hardware address it has: where bridges ask netfilter
 * (`bridge-nf-call-iptables`), conntrack has seen a packet before the bridge has it, and an entry made there comes a packet late.
 */
export function chooseUplinks(network: Network, { ipFamily, patterns, isPod }: UplinkRule): readonly Device[] {
  const candidates = network.devices.filter(({ isLoopback }) => !isLoopback).toSorted((a, b) => a.index - b.index);
  if (patterns.length > 0) {
    const expressions = patterns.map(expressionOf);
    return candidates.filter(({ name }) => expressions.some((expression) => expression.test(name)));
  }
  const whole = ipFamily === 'IPv4' ? 32 : 128;
  const reached = new Set(
    network.addresses
      .filter(({ isGlobal, prefixLength, address }) => isGlobal && prefixLength < whole && !isPod(address))
      .map(({ device }) => device),
  );
  const bridge = candidates.find(({ index, kind }) => index === network.defaultDevice && kind === 'bridge');
  const isItsPort = ({ master, hardwareAddress }: Device): boolean =>
    bridge !== undefined && master === bridge.index && hardwareAddress === bridge.hardwareAddress;
  return candidates.filter(
    (one) => one.index === network.defaultDevice || (one.kind !== 'bridge' && reached.has(one.index)) || isItsPort(one),
  );
}

/** Key of the node's own address among masquerade addresses. */
export const anyDevice = 0;

/**
 * As whom packets are masqueraded that leave by a device: its first global address, as kube-proxy does. Under `anyDevice`, for devices
 * without one: that of the default route's device, else the first of all.
 */
export function masqueradeAddresses({ addresses, defaultDevice }: Network): ReadonlyMap<number, Uint8Array> {
  const found = new Map<number, Uint8Array>();
  for (const { device, address, isGlobal, isSecondary } of addresses) {
    if (isGlobal && !isSecondary && !found.has(device)) found.set(device, address);
  }
  const node = (defaultDevice === undefined ? undefined : found.get(defaultDevice)) ?? found.values().next().value;
  if (node !== undefined) found.set(anyDevice, node);
  return found;
}

function expressionOf(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`);
}
