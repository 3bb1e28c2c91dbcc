import { HostError, millis } from '@switchyard/core';
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
  const chainsAt = chainReader({ clock: new ManualClock(), list: () => chains });
  expect(chainsAt('forward', 'IPv4')).toEqual(['inet other c', 'ip filter c']);
  expect(chainsAt('forward', 'IPv6')).toEqual(['inet other c', 'ip6 filter c']);
  expect(chainsAt('output', 'IPv4')).toEqual([]);
});

test('reads the list again after twenty times the CPU time that it took', () => {
  let lists = 0;
  let [time, cpu] = [0, 0];
  const list = () => {
    lists++;
    time += 500; // others use the CPU
    cpu += 10;
    return [];
  };
  const chainsAt = chainReader({ clock: { monotonic: () => millis(time) }, list, usedCpu: () => millis(cpu) });
  chainsAt('forward', 'IPv4');
  time += 200;
  chainsAt('forward', 'IPv4');
  expect(lists).toBe(1);
  time += 1;
  chainsAt('forward', 'IPv4');
  expect(lists).toBe(2);
});

test('without the right to read them there are none', () => {
  const list = () => {
    throw new HostError('x', 'EPERM');
  };
  expect(chainReader({ clock: new ManualClock(), list })('forward', 'IPv4')).toEqual([]);
});
