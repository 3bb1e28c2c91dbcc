import { type Cidr, parseCidr, parseIp, seconds } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { offsetOf } from '../layouts.ts';
import { addressBytes } from './address-bytes.ts';
import { encodeConfiguration, planWrites, wordCount } from './configuration.ts';

const constants = { hostNetns: 77n, udpSticky: seconds(60) };

function encode(
  cidrs: readonly string[],
  current: BigUint64Array = new BigUint64Array(wordCount),
  hasPodDetector = true,
) {
  return encodeConfiguration(
    constants,
    { serviceCidrs: cidrs.map(parseCidr), hasPodDetector, hasClusterIpsElsewhere: false },
    current,
  );
}

function byteOf(words: BigUint64Array, field: 'pod_class' | 'guards' | 'guard_all'): number | undefined {
  return new Uint8Array(words.buffer)[offsetOf('configuration', field)];
}

/** Verdict of programs for a miss: compares the active guards. */
function isGuarded(words: BigUint64Array, ip: string): boolean {
  const bytes = new Uint8Array(words.buffer);
  const address = addressBytes(parseIp(ip));
  return Array.from({ length: byteOf(words, 'guards') ?? 0 }).some((_, slot) => {
    const at = offsetOf('configuration', 'guard0_address') + slot * 32;
    return address.every((byte, index) => (byte & (bytes[at + 16 + index] ?? 0)) === bytes[at + index]);
  });
}

/** The configuration after changes from one list of service CIDRs to the next. */
function after(...lists: readonly (readonly string[])[]): BigUint64Array {
  let words: BigUint64Array = new BigUint64Array(wordCount);
  for (const list of lists) words = encode(list, words);
  return words;
}

describe('encodeConfiguration', () => {
  test('numbers are where programs look for them', () => {
    const view = new DataView(encode([]).buffer);
    const at = (field: Parameters<typeof offsetOf<'configuration'>>[1]): number => offsetOf('configuration', field);
    expect({
      hostNetns: view.getBigUint64(at('host_netns'), true),
      udpSticky: view.getUint32(at('udp_sticky_seconds'), true),
    }).toEqual({ hostNetns: 77n, udpSticky: 60 });
  });

  test.each([
    ['with a pod detector, sockets elsewhere are pods', true, 0],
    ['without one they are outside', false, 2],
  ])('%s', (_, hasPodDetector, podClass) => {
    expect(byteOf(encode([], undefined, hasPodDetector), 'pod_class')).toBe(podClass);
  });

  test.each<[string, readonly string[], number, number]>([
    ['no service CIDR is known: every miss may be at a cluster IP', [], 0, 1],
    ['one', ['10.96.0.0/12'], 1, 0],
    ['two', ['10.96.0.0/12', '10.200.0.0/16'], 2, 0],
    ['one within the other counts once', ['10.96.0.0/16', '10.96.0.0/12'], 1, 0],
    ['more than fit', ['10.96.0.0/12', '10.200.0.0/16', '10.201.0.0/16'], 2, 1],
  ])('service CIDRs: %s', (_, cidrs, guards, guardAll) => {
    const words = encode(cidrs);
    expect([byteOf(words, 'guards'), byteOf(words, 'guard_all')]).toEqual([guards, guardAll]);
  });

  test.each<[string, readonly (readonly string[])[], readonly string[], readonly string[]]>([
    ['what stays, stays where it is', [['10.96.0.0/12', '10.8.0.0/16'], ['10.8.0.0/16']], ['10.8.0.1'], ['10.96.0.1']],
    ['one for another', [['10.96.0.0/12'], ['10.8.0.0/16']], ['10.8.0.1'], ['10.96.0.1', '10.0.0.1']],
    ['back again', [['10.96.0.0/12'], ['10.8.0.0/16'], ['10.96.0.0/12']], ['10.96.0.1'], ['10.8.0.1', '10.0.0.1']],
    [
      'both for others',
      [
        ['10.1.0.0/16', '10.2.0.0/16'],
        ['10.3.0.0/16', '10.4.0.0/16'],
      ],
      ['10.3.0.1', '10.4.0.1'],
      ['10.1.0.1', '10.2.0.1'],
    ],
    ['none any more', [['10.96.0.0/12'], []], [], ['10.96.0.1']],
    ['IPv6', [['fd00:1::/108'], ['fd00:2::/108']], ['fd00:2::1'], ['fd00:1::1', 'fd00:2:0:1::1', '::1']],
  ])('changes of service CIDRs: %s', (_, lists, guarded, others) => {
    const words = after(...lists);
    expect(guarded.filter((ip) => !isGuarded(words, ip))).toEqual([]);
    expect(others.filter((ip) => isGuarded(words, ip))).toEqual([]);
    expect(planWrites(words, encode(lists.at(-1) ?? [], words))).toEqual([]);
  });
});

describe('planWrites', () => {
  const lists: readonly (readonly string[])[] = [
    [],
    ['10.96.0.0/12'],
    ['172.0.0.0/16'],
    ['172.0.0.0/8'],
    ['10.96.0.0/16', '10.98.0.0/16'],
    ['10.98.0.0/16'],
    ['10.1.0.0/16', '10.2.0.0/16'],
  ];
  const samples = [
    '10.96.1.1',
    '10.97.1.1',
    '10.98.1.1',
    '172.0.1.1',
    '172.1.1.1',
    '10.1.1.1',
    '10.2.1.1',
    '10.0.1.1',
    '192.0.2.1',
  ];
  const changes = lists.flatMap((from) => lists.flatMap((to) => lists.map((third) => [from, to, third] as const)));

  test('after each store, an address is guarded as it was or as it will be', () => {
    const wrong: string[] = [];
    for (const [from, to, third] of changes) {
      const before = after(from, to);
      const next = encode(third, before);
      const now = before.slice();
      const hasFreePlace = to.length + third.filter((cidr) => !to.includes(cidr)).length <= 2;
      for (const { word, value } of planWrites(before, next)) {
        now[word] = value;
        for (const ip of samples) {
          const [was, will, is] = [before, next, now].map((words) => isGuarded(words, ip));
          const isWrong = was === will && is !== was && (is === true || hasFreePlace);
          if (isWrong) wrong.push(`${ip} in ${from} -> ${to} -> ${third}`);
        }
      }
      expect(now).toEqual(next);
    }
    expect(wrong).toEqual([]);
  });

  test('where a place is free, no guard in use gets another CIDR', () => {
    const before = encode(['172.0.0.0/16']);
    const addressWord = offsetOf('configuration', 'guard0_address') / 8;
    const writes = planWrites(before, encode(['172.0.0.0/8'], before));
    const guardAddress = addressBytes(parseIp('172.0.0.0'));
    const low = new BigUint64Array(guardAddress.buffer)[1];
    expect(writes.filter(({ word, value }) => word === addressWord + 1 && value === low)).toEqual([]);
    expect(writes.some(({ word, value }) => word === addressWord + 5 && value === low)).toBe(true);
  });

  test('numbers that are read together change together', () => {
    const before = encode([]);
    const next = encode(['10.96.0.0/12'], before);
    const writes = planWrites(before, next);
    const guardsWord = Math.floor(offsetOf('configuration', 'guards') / 8);
    expect(writes.filter(({ word }) => word === guardsWord)).toHaveLength(1);
    expect(writes.at(-1)?.word).toBe(guardsWord);
  });

  test('invalid content is corrected', () => {
    const wanted = encode(['10.96.0.0/12']);
    const edited = wanted.slice();
    new Uint8Array(edited.buffer).fill(0xff, 8, 60);
    const next = encode(['10.96.0.0/12'], edited);
    for (const { word, value } of planWrites(edited, next)) edited[word] = value;
    expect(isGuarded(edited, '10.96.0.1')).toBe(true);
    expect(isGuarded(edited, '10.8.0.1')).toBe(false);
    expect(planWrites(edited, encode(['10.96.0.0/12'], edited))).toEqual([]);
  });
});

test.each<[Cidr, string]>([
  [parseCidr('10.0.0.0/8'), '10.0.0.0'],
  [parseCidr('fd00::/8'), 'fd00::'],
])('%s guards its first address', (cidr, first) => {
  expect(isGuarded(encode([cidr]), first)).toBe(true);
});
