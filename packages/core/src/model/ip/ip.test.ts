import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareIps, ipFamilyOf, ipFromBytes, ipToBytes, parseIp, tryParseIp } from './address.ts';
import { cidrContains, cidrsOverlap, everythingOf, hostCidr, isEverything, parseCidr, tryParseCidr } from './cidr.ts';
import { tryParsePort, tryParseProtocol } from './port.ts';

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ['::', '::'],
  ['fd00:0:0:1::0', 'fd00:0:0:1::'],
  ['010.0.0.1', undefined],
  ['10.0.0', undefined],
  ['10.0.0.256', undefined],
  ['fe80::1%eth0', undefined],
  ['::ffff:10.0.0.1', undefined],
  ['::ffff:0:0', undefined],
  ['::ffff:0:10.0.0.1', '::ffff:0:a00:1'],
  ['::ffff:2', '::ffff:2'],
  ['', undefined],
  ['host', undefined],
])('%j is the address %s', (text, expected) => {
  expect(tryParseIp(text)).toBe(expected);
});

test('an address that cannot be parsed is a mistake of the operator', () => {
  expect(() => parseIp('x')).toThrow('not an IP address: "x"');
  expect(() => parseCidr('10.0.0.0')).toThrow('not a CIDR such as 10.0.0.0/8');
});

const bytes4 = fc.uint8Array({ minLength: 4, maxLength: 4 });
const groups6 = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
const anyIp = fc.oneof(
  bytes4.map((bytes) => bytes.join('.')),
  groups6.map((groups) => groups.map((group) => group.toString(16)).join(':')),
);

test('addresses are ordered as their bytes are, IPv4 first', () => {
  fc.assert(
    fc.property(anyIp, anyIp, (a, b) => {
      const [x, y] = [tryParseIp(a), tryParseIp(b)];
      fc.pre(x !== undefined && y !== undefined);
      const expected = Buffer.compare(
        Buffer.of(ipFamilyOf(x) === 'IPv4' ? 4 : 6, ...ipToBytes(x)),
        Buffer.of(ipFamilyOf(y) === 'IPv4' ? 4 : 6, ...ipToBytes(y)),
      );
      expect(Math.sign(compareIps(x, y))).toBe(expected);
    }),
  );
});

test.each([
  ['10.1.2.3/8', '10.0.0.0/8'],
  [' 10.0.0.0/8\t', '10.0.0.0/8'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['2001:db8::1/32', '2001:db8::/32'],
  ['10.0.0.0/33', undefined],
  ['10.0.0.0/08', undefined],
  ['10.0.0.0', undefined],
  ['::/129', undefined],
])('%j is the CIDR %s', (text, expected) => {
  expect(tryParseCidr(text)).toBe(expected);
});

test.each([
  ['10.0.0.0/8', '10.255.0.1', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['0.0.0.0/0', '203.0.113.1', true],
  ['0.0.0.0/0', '::1', false],
  ['192.0.2.128/25', '192.0.2.127', false],
  ['2001:db8::/33', '2001:db8:7fff::', true],
  ['2001:db8::/33', '2001:db8:8000::', false],
])('%s contains %s: %s', (cidr, ip, expected) => {
  expect(cidrContains(parseCidr(cidr), parseIp(ip))).toBe(expected);
});

test('the smallest and the largest CIDR of a family', () => {
  expect([hostCidr(parseIp('10.0.0.1')), hostCidr(parseIp('::1'))]).toEqual(['10.0.0.1/32', '::1/128']);
  expect([everythingOf('IPv4'), everythingOf('IPv6')].map(isEverything)).toEqual([true, true]);
  expect(tryParseCidr(everythingOf('IPv6'))).toBe('::/0');
  expect(isEverything(parseCidr('0.0.0.0/1'))).toBe(false);
});

test.each([
  [1, 1],
  [65535, 65535],
  [0, undefined],
  [65536, undefined],
  [1.5, undefined],
  ['80', undefined],
  [undefined, undefined],
])('%j is the port %s', (value, expected) => {
  expect(tryParsePort(value)).toBe(expected);
});

test.each([
  ['TCP', 'TCP'],
  ['SCTP', 'SCTP'],
  ['tcp', undefined],
  [undefined, undefined],
])('%j is the protocol %s', (value, expected) => {
  expect(tryParseProtocol(value)).toBe(expected);
});

describe('ipFromBytes', () => {
  test.each(['0.0.0.0', '10.96.0.10', '255.255.255.255', '::', '::1', 'fd00:10:96::a', '2001:db8:0:1:1:1:1:1'])(
    'is the inverse of ipToBytes for %s',
    (text) => {
      expect(ipFromBytes(ipToBytes(parseIp(text)))).toBe(text);
    },
  );

  test('a mapped address keeps its long form', () => {
    const mapped = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1);
    expect(ipFromBytes(mapped)).toBe('0:0:0:0:0:ffff:a00:1');
  });

  test('another number of bytes is a mistake of the caller', () => {
    expect(() => ipFromBytes(new Uint8Array(5))).toThrow('an IP address has 4 or 16 bytes, not 5');
  });
});

test.each([
  ['127.0.0.0/8', '127.0.0.1/32', true],
  ['127.0.0.1/32', '127.0.0.0/8', true],
  ['126.0.0.0/7', '127.0.0.0/8', true],
  ['127.0.0.0/9', '127.128.0.0/9', false],
  ['0.0.0.0/0', '10.0.0.0/8', true],
  ['::/0', '0.0.0.0/0', false],
])('%s and %s overlap: %s', (a, b, expected) => {
  expect(cidrsOverlap(parseCidr(a), parseCidr(b))).toBe(expected);
});
