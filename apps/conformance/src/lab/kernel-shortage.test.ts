import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { KernelShortage } from './kernel-shortage.ts';

/** A kernel whose counters the test sets. */
function kernel() {
  const counters = { arp: 0, ndisc: 0, backlog: 0 };
  const hex = (value: number): string => value.toString(16).padStart(8, '0');
  const table = (value: number): string =>
    ['entries  allocs   table_fulls', `00000011 0000ffff ${hex(value)}`, '00000011 00000001 00000010', ''].join('\n');
  const texts: Readonly<Record<string, () => string>> = {
    '/proc/net/stat/arp_cache': () => table(counters.arp),
    '/proc/net/stat/ndisc_cache': () => table(counters.ndisc),
    '/proc/net/softnet_stat': () => `0000aaaa ${hex(counters.backlog)} 00000000\n0000bbbb 00000005 00000001\n`,
  };
  return { counters, shortage: new KernelShortage((file) => texts[file]?.() ?? '') };
}

const neighbours = 'its table of neighbours was full (net.ipv4.neigh.default.gc_thresh3)';
const backlog = 'a queue of received packets was full (net.core.netdev_max_backlog)';

test('names what was short between two times, and nothing before or after', () => {
  const { counters, shortage } = kernel();
  const step = (at: number): void => shortage.note(millis(at));
  for (const at of [1000, 2000, 3000, 4000]) step(at);
  counters.arp = 26;
  for (const at of [5000, 6000, 7000]) step(at);
  counters.ndisc = 1;
  counters.backlog = 40;
  for (const at of [8000, 9000, 10_000]) step(at);
  const between = (from: number, to: number): string | undefined => shortage.between(millis(from), millis(to));
  expect(between(1500, 3900)).toBeUndefined();
  expect(between(3500, 4500)).toBe(neighbours);
  expect(between(5000, 7000)).toBeUndefined();
  expect(between(6500, 9500)).toBe(`${neighbours}, and ${backlog}`);
  expect(between(8000, 9500)).toBeUndefined();
  shortage.forget(millis(6000));
  expect(between(3500, 4500)).toBeUndefined();
  expect(between(6500, 9500)).toBe(`${neighbours}, and ${backlog}`);
});

test('reads at most five times a second', () => {
  let reads = 0;
  const shortage = new KernelShortage(() => {
    reads += 1;
    return '';
  });
  for (let at = 0; at < 1000; at += 50) shortage.note(millis(at));
  expect(reads).toBe(5 * 3);
});

test('is silent where the files are missing', () => {
  const shortage = new KernelShortage(() => '');
  shortage.note(millis(0));
  shortage.note(millis(1000));
  expect(shortage.between(millis(0), millis(1000))).toBeUndefined();
});
