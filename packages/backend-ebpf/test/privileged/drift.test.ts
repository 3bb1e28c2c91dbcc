import { setTimeout } from 'node:timers/promises';
import { slice } from '@switchyard/core/testing';
import { createLab, type Lab } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Damage, damages, driftCluster, DriftRun } from './drift-run.ts';

const { signal } = new AbortController();
let lab: Lab;
let run: DriftRun;

beforeAll(async () => {
  lab = await createLab({ name: 'ebdrift', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  const [here] = lab.nodes;
  if (here === undefined) throw new Error('a node is missing');
  run = await DriftRun.start(lab, here, driftCluster(50, 10));
});
afterAll(async () => {
  await run?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
});

test('our own changes are no drift', async () => {
  const from = run.lines;
  const start = performance.now();
  for (let round = 0; performance.now() - start < 2500; round++) {
    const item = slice(`shop/s${round % 40}`, { endpoints: [`11.9.${round % 250}.1`] });
    run.push([{ kind: 'upsert', resource: 'EndpointSlice', item }]);
    await setTimeout(20);
  }
  expect(run.driftFrom(from)).toEqual([]);
});

test.each(Object.entries(damages).map(([name, [kind, change]]) => [name as Damage, kind, change] as const))(
  '%s: told as %s, and healed',
  async (name, kind, change) => {
    const before = await run.dump();
    const from = run.lines;
    const took = await run.heal(name);
    expect(run.driftFrom(from)).toEqual([{ kind, changes: expect.any(Array) }]);
    expect(run.driftFrom(from)[0]?.changes[0]).toMatch(change);
    expect(took).toBeLessThan(2000);
    expect(await run.dump()).toBe(before);
  },
);
