import { MemoryBpfMap } from '@switchyard/native/testing';
import { beforeEach, expect, test } from 'vitest';
import { mapShapes, smallestSizes } from '../render/layouts.ts';
import { SmallMapWatch, writeElements } from './small-map.ts';
import { masqueradeElements, type Network } from './wire/devices.ts';

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
  const watch = new SmallMapWatch();
  const holds = (one: Network): boolean => watch.holds(masquerade, () => masqueradeElements(one));
  const before = network([2, ipv4(10, 0, 0, 1)], [3, ipv4(10, 0, 1, 1)]);
  expect(holds(before)).toBe(false);
  expect(writeElements(masquerade, masqueradeElements(before))).toBe(3);
  expect(holds(before)).toBe(true);
  expect(writeElements(masquerade, masqueradeElements(before))).toBe(0);
  const after = network([2, ipv4(10, 0, 0, 2)]);
  watch.forget();
  expect(holds(after)).toBe(false);
  expect(writeElements(masquerade, masqueradeElements(after))).toBe(3); // of the device, of all others, and one gone
  expect(masquerade.lookup(Uint8Array.of(2, 0, 0, 0))).toEqual(ipv4(10, 0, 0, 2));
  expect(masquerade.lookup(Uint8Array.of(3, 0, 0, 0))).toBeUndefined();
});

test('elements are compared again only after the map has changed', () => {
  const watch = new SmallMapWatch();
  const wanted = masqueradeElements(network([2, ipv4(10, 0, 0, 1)]));
  let comparisons = 0;
  const holds = (): boolean => watch.holds(masquerade, () => (comparisons++, wanted));
  writeElements(masquerade, wanted);
  expect([holds(), holds(), comparisons]).toEqual([true, true, 1]);
  masquerade.update(Uint8Array.of(2, 0, 0, 0), ipv4(10, 0, 0, 9));
  expect([holds(), holds(), comparisons]).toEqual([false, false, 3]);
  writeElements(masquerade, wanted);
  expect([holds(), holds(), comparisons]).toEqual([true, true, 4]);
});
