import { MemoryBpfMap } from '@switchyard/native/testing';
import { beforeEach, expect, test } from 'vitest';
import { mapShapes, smallestSizes } from '../../render/layouts.ts';
import type { Network } from './devices.ts';
import { masqueradeFaults, writeMasqueradeAddresses } from './map-content.ts';

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
