import { expect, test } from 'vitest';
import { millis, seconds } from '../base/time.ts';
import { ManualClock } from './manual-clock.ts';

const never = new AbortController().signal;

test('time stands still until it is advanced, and both clocks move together', async () => {
  const clock = new ManualClock(1_000_000);
  expect([clock.now(), clock.monotonic()]).toEqual([1_000_000, 1_000_000]);
  await clock.advance(seconds(2));
  expect([clock.now(), clock.monotonic()]).toEqual([1_002_000, 1_002_000]);
  clock.jump(seconds(-500));
  expect([clock.now(), clock.monotonic()]).toEqual([502_000, 1_002_000]);
});

test('sleepers wake in the order in which they are due, each at its own time', async () => {
  const clock = new ManualClock();
  const woken: string[] = [];
  const sleep = async (name: string, duration: number): Promise<void> => {
    await clock.sleep(millis(duration), never);
    woken.push(`${name}@${clock.monotonic()}`);
  };
  const all = [sleep('late', 30), sleep('early', 10), sleep('beyond', 100)];
  await clock.advance(millis(50));
  expect(woken).toEqual(['early@10', 'late@30']);
  expect(clock.sleeping).toBe(1);
  await clock.advance(millis(50));
  await Promise.all(all);
  expect(woken.at(-1)).toBe('beyond@100');
});

test('a loop that sleeps again is woken again inside one advance', async () => {
  const clock = new ManualClock();
  let rounds = 0;
  const loop = (async () => {
    for (; rounds < 3; rounds++) await clock.sleep(millis(10), never);
  })();
  await clock.advance(millis(100));
  await loop;
  expect(rounds).toBe(3);
});

test('an aborted sleep rejects with the reason and is forgotten', async () => {
  const clock = new ManualClock();
  const controller = new AbortController();
  const slept = clock.sleep(millis(10), controller.signal);
  controller.abort(new Error('stop'));
  await expect(slept).rejects.toThrow('stop');
  expect(clock.sleeping).toBe(0);
  await expect(clock.sleep(millis(10), controller.signal)).rejects.toThrow('stop');
});

test('time does not run backwards', async () => {
  await expect(new ManualClock().advance(millis(-1))).rejects.toThrow('use jump()');
});
