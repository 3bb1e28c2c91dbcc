import type { ForwardingTable } from '@switchyard/core';
import { situation, there } from '@switchyard/core/testing';
import { createLab, type Lab } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Kernel, signal } from './support.ts';

let lab: Lab;

beforeAll(async () => {
  lab = await createLab({ name: 'nftn', nodes: 1, ipFamilies: ['IPv4'] }, signal);
});

afterAll(() => lab[Symbol.asyncDispose]());

function pair(one: number, other: number): ForwardingTable {
  const endpoints = (count: number, net: number): ReturnType<typeof there>[] =>
    Array.from({ length: count }, (_, index) => there(`10.${net}.${index >> 8}.${index & 255}`));
  return situation({
    one: { clusterIps: ['10.96.0.1'], endpoints: endpoints(one, 11) },
    other: { clusterIps: ['10.96.0.2'], endpoints: endpoints(other, 12) },
  });
}

const endpointsIn = (dump: string): number => dump.match(/ 10\.1[12]\.\d+\.\d+:8080/g)?.length ?? 0;

test('sets grow and shrink over every kind of class, and are adopted at each size without a write', async () => {
  const node = lab.nodes[0]!;
  const kernel = await Kernel.open(node);
  await kernel.full(pair(2, 2));
  // Exact in the rules, exact at run time (for two services at once, then again), large, and back.
  const sizes: readonly (readonly [number, number])[] = [
    [64, 2],
    [65, 65],
    [300, 2],
    [301, 300],
    [1024, 2],
    [1025, 2],
    [300, 1024],
    [1, 64],
  ];
  for (const [one, other] of sizes) {
    const table = pair(one, other);
    expect(await kernel.next(table)).toMatchObject({ status: 'applied' });
    expect(endpointsIn(await kernel.backend.dump(signal))).toBe(one + other);
    const restarted = await Kernel.open(node);
    expect(await restarted.full(table)).toEqual({ status: 'applied', writes: 0 });
    await restarted.backend[Symbol.asyncDispose]();
  }
});
