import { createHash } from 'node:crypto';
import { printItem } from '@switchyard/backend-nftables';
import { expect, test } from 'vitest';
import { defaultWireMarks, guardChains, isChainOf } from './guard-rules.ts';

test('each family has chains of its own, and its own only', () => {
  const names = (family: 'IPv4' | 'IPv6'): readonly string[] =>
    guardChains(family, defaultWireMarks).map(({ name }) => name);
  expect(names('IPv4')).toEqual(['nat-prerouting4', 'nat-postrouting4', 'guard4']);
  for (const name of names('IPv4')) expect([isChainOf('IPv4', name), isChainOf('IPv6', name)]).toEqual([true, false]);
  for (const name of names('IPv6')) expect([isChainOf('IPv4', name), isChainOf('IPv6', name)]).toEqual([false, true]);
  expect(isChainOf('IPv4', 'birthmark4-00112233445566')).toBe(true);
  expect(isChainOf('IPv6', 'birthmark4-00112233445566')).toBe(false); // although its digest ends in 6
});

test('rules act on the marks that they are given, and take both away', () => {
  const text = guardChains('IPv6', { service: 0x100, reject: 0x8000_0000 }).flatMap(printItem).join('\n');
  expect(text).toContain('meta mark and 0x80000000 != 0 reject with icmpv6 port-unreachable');
  expect(text).toContain('meta mark and 0x100 != 0 ct state new ct status and dnat == 0 drop');
  expect(text).toContain('meta mark set meta mark and 0x7ffffeff');
});

test('the text of the rules, from which the mark of the table is made, is that of the releases before', () => {
  const digest = (family: 'IPv4' | 'IPv6'): string => {
    const lines = guardChains(family, defaultWireMarks).flatMap(printItem);
    return createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16);
  };
  expect([digest('IPv4'), digest('IPv6')]).toEqual(['ecc629aeb043bbe8', '4ae370d4c9191a64']);
});
