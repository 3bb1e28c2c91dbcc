import assert from 'node:assert/strict';
import { test } from 'vitest';
import { runStage } from './run-stage.ts';
import type { Suite } from './suites.ts';

const suites = ['a', 'b', 'c'].map((name): Suite => ({ name, command: ['true'] }));

/** Runs the suites; each ends when `end` is called. `shares`: what the looks at the processors find, in turn. */
function started(width: number, shares?: number[]) {
  const events: string[] = [];
  const ends = new Map<string, () => void>();
  const looks: (() => void)[] = [];
  const stage = { suites, width, ...(shares === undefined ? {} : { leastIdle: 0.15 }) };
  const over = runStage(
    stage,
    async ({ name }) => {
      events.push(name);
      await new Promise<void>((resolve) => ends.set(name, resolve));
    },
    async () => {
      await new Promise<void>((resolve) => looks.push(resolve));
      return shares?.shift() ?? assert.fail('one look too many');
    },
  );
  const settle = async () => void (await new Promise((resolve) => setImmediate(resolve)));
  return {
    events,
    over,
    end: async (name: string) => (ends.get(name)?.(), settle()),
    look: async () => (looks.shift()?.(), settle()),
  };
}

test('as many suites as the stage is wide run side by side, in their order', async () => {
  const { events, end, over } = started(2);
  assert.deepEqual(events, ['a', 'b']);
  await end('b');
  assert.deepEqual(events, ['a', 'b', 'c']);
  await end('a');
  await end('c');
  await over;
});

test('a patient stage starts another one only beside idle processors, or when none is left', async () => {
  const { events, end, look, over } = started(3, [0.1, 0.2, 0]);
  assert.deepEqual(events, ['a']);
  await look(); // busy
  assert.deepEqual(events, ['a']);
  await look();
  assert.deepEqual(events, ['a', 'b']);
  await end('a');
  await end('b');
  await look(); // busy, by something else
  assert.deepEqual(events, ['a', 'b', 'c']);
  await end('c');
  await over;
});
