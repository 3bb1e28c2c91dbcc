import { ipToBytes, parseIp, tryParseIp, ipv4Text, ipv6Text } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { elementOf, type RawElement } from './decode-elements.ts';
import { type IntervalForm, intervalTexts, type ReadBoundary } from './decode-intervals.ts';
import { objectLayout } from './encode-batch.ts';

describe('addresses from bytes are spelled as core spells them', () => {
  test.each(['0.0.0.0', '10.0.0.1', '255.255.255.255'])('%s', (text) => {
    expect(ipv4Text(ipToBytes(parseIp(text)), 0)).toBe(text);
  });

  test.each([
    '::',
    '::1',
    '1::',
    'fd00::1',
    '1:2:3:4:5:6:7:8',
    '1:0:0:2::3',
    '2001:db8:0:1:1:1:1:1',
    '0:1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:0',
    '::a00:1',
    '1:0:0:4:5:0:0:8',
    'fe80::ffff:0:0:1',
  ])('%s', (text) => {
    expect(ipv6Text(ipToBytes(parseIp(text)), 0)).toBe(parseIp(text));
  });

  test('every pattern of zero groups', () => {
    for (let pattern = 0; pattern < 256; pattern++) {
      const groups = Array.from({ length: 8 }, (_, index) => ((pattern >> index) & 1 ? '0' : 'a1'));
      const ip = parseIp(groups.join(':'));
      expect(ipv6Text(ipToBytes(ip), 0)).toBe(ip);
    }
  });

  test('an IPv4-mapped address looks like nothing we want', () => {
    const bytes = new Uint8Array(16);
    bytes.set([0xff, 0xff, 10, 0, 0, 1], 10);
    expect(ipv6Text(bytes, 0)).toBe('0:0:0:0:0:ffff:a00:1');
    expect(tryParseIp('0:0:0:0:0:ffff:a00:1')).toBeUndefined();
  });
});

describe('intervals', () => {
  const at = (address: string, isEnd = false): ReadBoundary => ({
    address: BigInt(`0x${Buffer.from(ipToBytes(parseIp(address))).toString('hex')}`),
    isEnd,
  });
  /** A name, its last byte counted up by `more`. */
  const name = (text: string, isEnd = false, more = 0n): ReadBoundary => ({
    address: BigInt(`0x${Buffer.from(text.padEnd(16, '\0')).toString('hex')}`) + more,
    isEnd,
  });
  test.each<[string, readonly ReadBoundary[], IntervalForm, readonly string[]]>([
    ['nothing', [], 'ipv4', []],
    ['the stretch below the first one', [at('0.0.0.0', true)], 'ipv4', []],
    ['one, in the kernel’s order', [at('11.0.0.0', true), at('10.0.0.0'), at('0.0.0.0', true)], 'ipv4', ['10.0.0.0/8']],
    ['one address', [at('10.0.0.2', true), at('10.0.0.1')], 'ipv4', ['10.0.0.1/32']],
    [
      'neighbours stay two',
      [at('11.0.0.0', true), at('10.128.0.0'), at('10.128.0.0', true), at('10.0.0.0')],
      'ipv4',
      ['10.0.0.0/9', '10.128.0.0/9'],
    ],
    [
      'neighbours without an end between them',
      [at('10.0.0.0'), at('10.128.0.0'), at('11.0.0.0', true)],
      'ipv4',
      ['10.0.0.0/9', '10.128.0.0/9'],
    ],
    ['one without an end', [at('255.0.0.0')], 'ipv4', ['255.0.0.0/8']],
    ['everything', [at('::')], 'ipv6', ['::/0']],
    ['the upper half', [at('8000::')], 'ipv6', ['8000::/1']],
    ['no CIDR', [at('10.0.0.1'), at('10.0.0.4', true)], 'ipv4', ['{"range":["10.0.0.1","10.0.0.3"]}']],
    ['an interface', [name('\0', true), name('cni0'), name('cni0', true, 1n)], 'interface', ['"cni0"']],
    ['all that begin with veth', [name('veth'), name('veti', true)], 'interface', ['"veth*"']],
    [
      'the longest name',
      [name('a23456789012345'), name('a23456789012345\x01', true)],
      'interface',
      ['"a23456789012345"'],
    ],
    ['names from one to another', [name('a'), name('c', true)], 'interface', [expect.stringContaining('range')]],
    [
      'sorted as text',
      [at('9.0.0.0'), at('10.0.0.0', true), at('10.0.0.0'), at('11.0.0.0', true)],
      'ipv4',
      ['10.0.0.0/8', '9.0.0.0/8'],
    ],
  ])('%s', (_, boundaries, form, texts) => {
    expect(intervalTexts(boundaries, form)).toEqual(texts);
  });
});

describe('an element of another shape than ours is refused, not guessed', () => {
  const raw = (key: string, more: Partial<RawElement> = {}): [Uint8Array, RawElement] => {
    const bytes = Buffer.from(`ffffffff${key}`, 'hex');
    const none = { keyEnd: 0, data: 0, dataLength: 0, flags: 0, chain: '', expression: 0, expressionEnd: 0 };
    return [bytes, { ...none, key: 4, keyLength: bytes.length - 4, ...more }];
  };
  test.each<[string, string, [Uint8Array, RawElement]]>([
    ['a key of another length', 'cluster-ips4', raw('0a0000010000')],
    ['no key', 'cluster-ips4', raw('', { key: 0, keyLength: 0 })],
    ['data in a set', 'cluster-ips4', raw('0a000001', { data: 4, dataLength: 4 })],
    ['no data in a map', 'to-cluster4', raw('01000000')],
    [
      'another protocol',
      'frontends4',
      raw('0a000001210000000050000001000000', { keyLength: 12, data: 16, dataLength: 4 }),
    ],
  ])('%s', (_, object, [bytes, element]) => {
    expect(() => elementOf(bytes, element, objectLayout(object))).toThrow(
      `cannot read an element of our own nft table: ${object} holds`,
    );
  });
});
