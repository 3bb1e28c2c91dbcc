import { expect, test } from 'vitest';
import { ManualClock } from '../testing/manual-clock.ts';
import { seconds } from '../base/time.ts';
import { OutageWaits } from './outages.ts';

const { signal } = new AbortController();

test('a wait takes its time', async () => {
  const clock = new ManualClock();
  let isOver = false;
  const waiting = new OutageWaits(clock).sleep(seconds(30), signal).then(() => (isOver = true));
  await clock.advance(29_999);
  expect(isOver).toBe(false);
  await clock.advance(1);
  await waiting;
});

test('the end of the outage ends every wait, and no later one', async () => {
  const clock = new ManualClock();
  const waits = new OutageWaits(clock);
  const waiting = [waits.sleep(seconds(30), signal), waits.sleep(seconds(20), signal)];
  waits.end();
  await Promise.all(waiting);
  expect(clock.sleeping).toBe(0);
  const later = waits.sleep(seconds(5), signal);
  expect(clock.sleeping).toBe(1);
  await clock.advance(5000);
  await later;
});

test('a server that comes and goes ends waits once in ten seconds', async () => {
  const clock = new ManualClock();
  const waits = new OutageWaits(clock);
  waits.end();
  const waiting = waits.sleep(seconds(30), signal);
  await clock.advance(9999);
  waits.end();
  expect(clock.sleeping).toBe(1);
  await clock.advance(1);
  waits.end();
  await waiting;
  expect(clock.sleeping).toBe(0);
});

test('a stop is a stop', async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const waiting = new OutageWaits(clock).sleep(seconds(30), stop.signal);
  stop.abort('stopped');
  await expect(waiting).rejects.toBe('stopped');
});
