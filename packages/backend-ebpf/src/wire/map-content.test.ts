import { MemoryBpfMap } from '@switchyard/native/testing';
import { beforeEach, expect, test } from 'vitest';
import { mapShapes, smallestSizes } from '../layouts.ts';
import type { Network } from './devices.ts';
import { masqueradeFaults, podAddresses, writeMasqueradeAddresses } from './map-content.ts';

const shapes = mapShapes(smallestSizes);
const ipv4 = (...octets: readonly number[]): Uint8Array =>
  Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...octets]);

let masquerade: MemoryBpfMap;

beforeEach(() => {
  masquerade = new MemoryBpfMap(shapes.masq_addresses);
});

const network = (...addresses: readonly (readonly [device: number, address: Uint8Array])[]): Network => ({
  devices: [],
  addresses: addresses.map(([device, address]) => ({
    device,
    address,
    prefixLength: 24,
    isGlobal: true,
    isSecondary: false,
    isInUse: true,
  })),
  defaultDevice: 2,
});

test('masquerade addresses are written once, changed where they change, and deleted with their device', () => {
  const before = network([2, ipv4(10, 0, 0, 1)], [3, ipv4(10, 0, 1, 1)]);
  expect(masqueradeFaults(masquerade, before)).toHaveLength(1);
  expect(writeMasqueradeAddresses(masquerade, before)).toBe(3);
  expect(masqueradeFaults(masquerade, before)).toEqual([]);
  expect(writeMasqueradeAddresses(masquerade, before)).toBe(0);
  const after = network([2, ipv4(10, 0, 0, 2)]);
  expect(masqueradeFaults(masquerade, after)).toHaveLength(1);
  expect(writeMasqueradeAddresses(masquerade, after)).toBe(3); // of the device, of all others, and one gone
  expect(masquerade.lookup(Uint8Array.of(2, 0, 0, 0))).toEqual(ipv4(10, 0, 0, 2));
  expect(masquerade.lookup(Uint8Array.of(3, 0, 0, 0))).toBeUndefined();
});

test.each([
  ['inside', ipv4(10, 244, 7, 3), true],
  ['in a part of a byte', ipv4(10, 96, 33, 1), true],
  ['beside that', ipv4(10, 96, 64, 1), false],
  ['outside', ipv4(172, 18, 0, 11), false],
  ['of the other family', Uint8Array.from([0x20, 1, ...ipv4(10, 244, 7, 3).subarray(2)]), false],
])('an address %s of the pod CIDRs', (_, address, expected) => {
  const map = new MemoryBpfMap(shapes.pod_cidrs);
  const add = (length: number, prefix: Uint8Array): void =>
    map.update(Uint8Array.from([length, 0, 0, 0, ...prefix]), Uint8Array.of(1));
  add(96 + 16, ipv4(10, 244, 0, 0));
  add(96 + 18, ipv4(10, 96, 0, 0));
  expect(podAddresses(map)(address)).toBe(expected);
});
