import type { ForwardingTable } from '@switchyard/core';
import { ManualClock, situation, there } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { Driven } from './support.ts';

/** Services with ten endpoints each, so many of them that there are `endpoints` in all; the first lacks its first `less`. */
function cluster(endpoints: number, less = 0): ForwardingTable {
  const ip = (index: number): string => `10.244.${index >> 8}.${index & 255}`;
  return situation(
    Object.fromEntries(
      Array.from({ length: Math.ceil(endpoints / 10) }, (_, service) => {
        const indices = Array.from({ length: 10 }, (_unused, at) => 10 * service + at).filter(
          (index) => index >= less && index < endpoints + less,
        );
        const clusterIps = [`10.96.${service >> 8}.${service & 255}`];
        return [`s${service}`, { clusterIps, endpoints: indices.map((index) => there(ip(index))) }];
      }),
    ),
  );
}

const chains = (dump: string): number => dump.match(/^:KUBE-SEP-/gm)?.length ?? 0;
const arrows = (dump: string): number => dump.match(/ -> 10\.244\./g)?.length ?? 0;

test('up to 1000 endpoints rules of endpoints carry comments, from then on they do not', async () => {
  const driven = await Driven.open();
  await driven.full(cluster(1000));
  expect(arrows(await driven.dump())).toBe(1000);
  await driven.next(cluster(1001));
  expect(arrows(await driven.dump())).toBe(0);
  expect(await driven.full(cluster(1001))).toEqual({ status: 'applied', writes: 0 });
  await driven.next(cluster(1000));
  expect(arrows(await driven.dump())).toBe(1000);
});

test('chains that nothing leads to any more stay until the sync period has passed since others went', async () => {
  const clock = new ManualClock();
  const driven = await Driven.open({ clock });
  await driven.full(cluster(1010));
  await driven.next(cluster(1009, 1)); // nothing was removed for long
  expect(chains(await driven.dump())).toBe(1009);
  await driven.next(cluster(1008, 2));
  expect(chains(await driven.dump())).toBe(1009);
  await clock.advance(30_000);
  await driven.next(cluster(1007, 3));
  expect(chains(await driven.dump())).toBe(1007);
});

test('a chain that is wanted again while it stays is not written again', async () => {
  const driven = await Driven.open();
  await driven.full(cluster(1010));
  await driven.next(cluster(1009, 1));
  await driven.next(cluster(1008, 2));
  expect(await driven.next(cluster(1009, 1))).toEqual({ status: 'applied', writes: 1 });
});
