import { millis } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import type { BaseChain } from '@switchyard/netfilter';
import { expect, test } from 'vitest';
import { chainReader } from './chains-at.ts';

const chain = (family: BaseChain['family'], table: string, hook: BaseChain['hook']): BaseChain => ({
  family,
  table,
  chain: 'c',
  hook,
});

test('names chains of other programs at the hook, of the family or of both', () => {
  const chains = [
    chain('inet', 'other', 'forward'),
    chain('ip', 'filter', 'forward'),
    chain('ip6', 'filter', 'forward'),
    chain('inet', 'other', 'input'),
    chain('inet', 'switchyard', 'forward'),
    chain('ip', 'kube-proxy', 'forward'),
  ];
  const chainsAt = chainReader(new ManualClock(), () => chains);
  expect(chainsAt('forward', 'IPv4')).toEqual(['inet other c', 'ip filter c']);
  expect(chainsAt('forward', 'IPv6')).toEqual(['inet other c', 'ip6 filter c']);
  expect(chainsAt('output', 'IPv4')).toEqual([]);
});

test('reads the list again after twenty times what it took', async () => {
  let lists = 0;
  let time = 0;
  const chainsAt = chainReader({ monotonic: () => millis(time) }, () => {
    lists++;
    time += 10;
    return [];
  });
  chainsAt('forward', 'IPv4');
  time += 200;
  chainsAt('forward', 'IPv4');
  expect(lists).toBe(1);
  time += 1;
  chainsAt('forward', 'IPv4');
  expect(lists).toBe(2);
});
