import type { ForwardingTable } from '@switchyard/core';
import { addressNumber, situation, there } from '@switchyard/core/testing';
import { createLab, type Lab } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Kernel, signal } from './support.ts';

let lab: Lab;

beforeAll(async () => {
  lab = await createLab({ name: 'nftz', nodes: 1, ipFamilies: ['IPv4'] }, signal);
});

afterAll(() => lab[Symbol.asyncDispose]());

function services(count: number, extra: number): ForwardingTable {
  const entries = Array.from({ length: count }, (_, index) => {
    const endpoints = Array.from({ length: 10 + (index === 0 ? extra : 0) }, (__, at) =>
      there(addressNumber(11, index * 16 + at)),
    );
    return [`s${index}`, { clusterIps: [addressNumber(10, index)], endpoints }] as const;
  });
  return situation(Object.fromEntries(entries));
}

/** Bounds are ten times what a quiet machine needs (see docs/figures.md): they catch a change of order. */
test('5,000 services of ten endpoints load in one transaction, change in one of three writes, and are adopted', async () => {
  const kernel = await Kernel.open(lab.nodes[0]!);
  const [five, oneMore] = [services(5000, 0), services(5000, 1)];
  const time = async (work: () => Promise<unknown>): Promise<number> => {
    const start = performance.now();
    await work();
    return performance.now() - start;
  };
  const load = await time(async () => expect(await kernel.full(five)).toEqual({ status: 'applied', writes: 65_002 }));
  expect(load).toBeLessThan(20_000);
  const first = [...oneMore.services.values()].find(({ service }) => service === 'shop/s0')!;
  const delta = { upserted: [first], removed: [], settingsChanged: false };
  const change = await time(async () =>
    expect(await kernel.backend.apply({ table: oneMore, scope: { kind: 'delta', delta } }, signal)).toEqual({
      status: 'applied',
      writes: 3,
    }),
  );
  expect(change).toBeLessThan(500);
  const restarted = await Kernel.open(lab.nodes[0]!);
  const adoption = await time(async () =>
    expect(await restarted.full(oneMore)).toEqual({ status: 'applied', writes: 0 }),
  );
  expect(adoption).toBeLessThan(20_000);
});
