import type { IpFamily, PodDetector } from '@switchyard/core';
import { addressFamilies, type Device, type DeviceAddress, DeviceReader, openNetlinkSocket } from '@switchyard/native';
import { bytesOf } from '../../render/address-words.ts';
import { isInCidr } from '../../render/settings/address-bytes.ts';
import type { MapElement } from '../small-map.ts';

/** State of a network namespace that decides which devices get the program, and the masquerade addresses. */
export interface Network {
  readonly devices: readonly Device[];
  /** Of one family, in the kernel's order. */
  readonly addresses: readonly DeviceAddress[];
  /** Device of the default route; undefined without one. */
  readonly defaultDevice: number | undefined;
}

/** Remote addresses whose route is the default route: listing routes could mean a million. Nothing is sent there. */
const farAway: Readonly<Record<IpFamily, Uint8Array>> = {
  IPv4: Uint8Array.of(9, 9, 9, 9),
  IPv6: Uint8Array.of(0x26, 0x20, 0, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe),
};

/** Reads the network; takes some 15 ms for 500 devices on a busy machine. Throws `HostError`. */
export function readNetwork(family: IpFamily, netns: string | undefined): Network {
  using socket = openNetlinkSocket({ protocol: 'route', netns });
  const reader = new DeviceReader(socket);
  return {
    devices: reader.devices(),
    addresses: reader.addresses(addressFamilies[family]),
    defaultDevice: reader.deviceTo(farAway[family]),
  };
}

export interface UplinkRule {
  /** Names, `*` for any characters; empty: see `chooseUplinks`. */
  readonly patterns: readonly string[];
  readonly podDetector: PodDetector;
}

/**
 * The devices that get the program, by index.
 *
 * With patterns: those that match, except loopback. Otherwise all that pass packets to this machine's network layer, with or without an
 * address: hardware, VLANs, bonds, tunnels, devices of pods. Not loopback, ports of bridges and bonds, and devices by whose names pods
 * are detected: the program detects pods by their addresses. Not bridges: where they call netfilter (`bridge-nf-call-iptables`),
 * conntrack sees a packet before the bridge's program does, and the entry would be one packet late. The bridge of the default route gets
 * the program with the port whose hardware address it has: that port's packets are in time.
 */
export function chooseUplinks(network: Network, { patterns, podDetector }: UplinkRule): readonly Device[] {
  const candidates = network.devices.filter(({ isLoopback }) => !isLoopback).toSorted((a, b) => a.index - b.index);
  if (patterns.length > 0) {
    const expressions = patterns.map(expressionOf);
    return candidates.filter(({ name }) => expressions.some((expression) => expression.test(name)));
  }
  const kinds = new Map(candidates.map(({ index, kind }) => [index, kind]));
  const bridge = candidates.find(({ index, kind }) => index === network.defaultDevice && kind === 'bridge');
  const isItsPort = ({ master, hardwareAddress }: Device): boolean =>
    bridge !== undefined && master === bridge.index && hardwareAddress === bridge.hardwareAddress;
  // Devices of a routing domain (VRF) are no ports: they pass packets to the network layer themselves.
  const isPort = ({ master }: Device): boolean => master !== 0 && kinds.get(master) !== 'vrf';
  return candidates.filter(
    (one) =>
      one.index === network.defaultDevice ||
      isItsPort(one) ||
      (one.kind !== 'bridge' && !isPort(one) && !detectsPods(podDetector, one)),
  );
}

/** Bridges whose packets the program sees too late: not those without ports, of pods, of the default route. */
export function bridgesForRules(network: Network, { patterns, podDetector }: UplinkRule): readonly Device[] {
  if (patterns.length > 0) return [];
  const masters = new Set(network.devices.map(({ master }) => master));
  const isOfPods = ({ index }: Device): boolean =>
    podDetector.kind === 'cidr' &&
    network.addresses.some(({ device, address }) => device === index && isInCidr(address, podDetector.cidr));
  return network.devices.filter(
    (one) =>
      one.kind === 'bridge' &&
      one.index !== network.defaultDevice &&
      masters.has(one.index) &&
      !detectsPods(podDetector, one) &&
      !isOfPods(one),
  );
}

function detectsPods(detector: PodDetector, { name }: Device): boolean {
  if (detector.kind === 'interface') return name === detector.name;
  return detector.kind === 'interfacePrefix' && name.startsWith(detector.prefix);
}

/** Key of the node's own address among masquerade addresses. */
export const anyDevice = 0;

/** A device's first global address, as in kube-proxy; `anyDevice`: that of the default route's device, or the first. */
export function masqueradeAddresses({ addresses, defaultDevice }: Network): ReadonlyMap<number, Uint8Array> {
  const found = new Map<number, Uint8Array>();
  for (const { device, address, isGlobal, isSecondary } of addresses) {
    if (isGlobal && !isSecondary && !found.has(device)) found.set(device, address);
  }
  const node = (defaultDevice === undefined ? undefined : found.get(defaultDevice)) ?? found.values().next().value;
  if (node !== undefined) found.set(anyDevice, node);
  return found;
}

/** The same as elements of `masq_addresses`. */
export function masqueradeElements(network: Network): readonly MapElement[] {
  return Array.from(masqueradeAddresses(network), ([device, address]) => [bytesOf(Uint32Array.of(device)), address]);
}

function expressionOf(pattern: string): RegExp {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('.*')}$`);
}
