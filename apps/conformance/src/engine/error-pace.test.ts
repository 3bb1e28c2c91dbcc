import { type IpAddress, millis, parseIp } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import type { ScenarioFlow } from '@switchyard/scenarios';
import { expect, test } from 'vitest';
import { ErrorPace } from './error-pace.ts';

const { signal } = new AbortController();

function flow(from: 'pod' | 'outside', to: IpAddress = parseIp('10.96.0.1')): ScenarioFlow {
  return { from, fromEndpoint: undefined, to } as ScenarioFlow; // the rest is not looked at
}

function paceWith(read: () => Promise<number | undefined> = async () => 0): {
  readonly pace: ErrorPace;
  readonly clock: ManualClock;
} {
  const clock = new ManualClock();
  return { pace: new ErrorPace({ icmpErrorsHeldBack: read }, signal, clock), clock };
}

test('work for one sender is done one by one, at the pace that Linux allows; other senders and families have their own', async () => {
  const { pace, clock } = paceWith();
  const done: string[] = [];
  const add = (name: string, one: ScenarioFlow): Promise<void> =>
    pace.limitsFor(one).paced(async () => void done.push(name));
  const all = [
    add('pod 1', flow('pod')),
    add('pod 2', flow('pod')),
    add('outside', flow('outside')),
    add('IPv6', flow('pod', parseIp('fd00::1'))),
  ];
  await clock.advance(millis(1050));
  expect(done).toEqual([]);
  await clock.advance(millis(100));
  expect(done.toSorted()).toEqual(['IPv6', 'outside', 'pod 1']);
  await clock.advance(millis(1100));
  await Promise.all(all);
  expect(done.at(-1)).toBe('pod 2');
});

test('work that fails leaves the next its turn', async () => {
  const { pace, clock } = paceWith();
  const { paced } = pace.limitsFor(flow('pod'));
  const failing = paced(() => Promise.reject(new Error('no route')));
  const next = paced(async () => 'done');
  failing.catch(() => undefined); // looked at below
  await clock.advance(millis(2300));
  await expect(failing).rejects.toThrow('no route');
  expect(await next).toBe('done');
});

test('a count is read after the call, once for all calls that wait meanwhile', async () => {
  const readings: PromiseWithResolvers<number>[] = [];
  const { pace } = paceWith(() => {
    const reading = Promise.withResolvers<number>();
    readings.push(reading);
    return reading.promise;
  });
  const { heldBack } = pace.limitsFor(flow('pod'));
  const first = [heldBack(), heldBack()];
  await Promise.resolve();
  await Promise.resolve();
  expect(readings).toHaveLength(1);
  const later = [heldBack(), heldBack()];
  readings[0]?.resolve(3);
  expect(await Promise.all(first)).toEqual([3, 3]);
  await Promise.resolve();
  readings[1]?.resolve(4);
  expect(await Promise.all(later)).toEqual([4, 4]);
  expect(readings).toHaveLength(2);
});

test('who may provoke errors waits for all that expects silence, also for what begins in the same turn', async () => {
  const { pace } = paceWith();
  const order: string[] = [];
  const silence = Promise.withResolvers<void>();
  const after = pace.afterSilence().then(() => order.push('reject'));
  pace.noteSilent(silence.promise.then(() => order.push('drop')));
  pace.noteSilent(Promise.reject(new Error('its own fault')));
  await Promise.resolve();
  silence.resolve();
  await after;
  expect(order).toEqual(['drop', 'reject']);
});
