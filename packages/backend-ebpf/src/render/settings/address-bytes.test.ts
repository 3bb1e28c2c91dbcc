import { parseCidr } from '@switchyard/core';
import { expect, test } from 'vitest';
import { isInCidr } from './address-bytes.ts';

const ipv4 = (...octets: readonly number[]): Uint8Array =>
  Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...octets]);

test.each([
  ['inside', ipv4(10, 244, 7, 3), '10.244.0.0/16', true],
  ['inside, in a part of a byte', ipv4(10, 96, 33, 1), '10.96.0.0/18', true],
  ['outside, in a part of a byte', ipv4(10, 96, 64, 1), '10.96.0.0/18', false],
  ['outside', ipv4(172, 18, 0, 11), '10.244.0.0/16', false],
  [
    'of the other family, outside',
    Uint8Array.from([0x20, 1, ...ipv4(10, 244, 7, 3).subarray(2)]),
    '10.244.0.0/16',
    false,
  ],
])('an address %s of a CIDR', (_, address, cidr, expected) => {
  expect(isInCidr(address, parseCidr(cidr))).toBe(expected);
});
