import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage, Suite } from './suites.ts';

/** Duration of one measurement of that share, in milliseconds. */
const look = 10_000;

/** Runs all suites of a stage, in their order. `run` never rejects. */
export async function runStage(
  { suites, width, leastIdle = 0 }: Stage,
  run: (suite: Suite) => Promise<void>,
  idleShare: () => Promise<number> = measureIdle,
): Promise<void> {
  const running = new Set<Promise<void>>();
  for (const suite of suites) {
    while (running.size >= width) await Promise.race(running);
    if (leastIdle > 0) while (running.size > 0 && (await idleShare()) < leastIdle);
    const ended = run(suite).finally(() => running.delete(ended));
    running.add(ended);
  }
  await Promise.all(running);
}

/** Share of the processors' time that nothing used, from now on for `look` milliseconds. */
async function measureIdle(): Promise<number> {
  const before = times();
  await sleep(look);
  const after = times();
  return (after.idle - before.idle) / (after.all - before.all);
}

function times(): { readonly idle: number; readonly all: number } {
  const each = cpus().map(({ times: { user, nice, sys, idle, irq } }) => ({
    idle,
    all: user + nice + sys + idle + irq,
  }));
  return { idle: each.reduce((sum, one) => sum + one.idle, 0), all: each.reduce((sum, one) => sum + one.all, 0) };
}
