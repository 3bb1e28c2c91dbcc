import { serviceKey } from '@switchyard/core';
import { ManualClock } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import type { LoadBalancerId } from '../spec/load-balancer-spec.ts';
import { DisturbanceThrottle } from './disturbance-throttle.ts';

const id: LoadBalancerId = { cluster: 'kind', service: serviceKey('default', 'web') };

function fixture(): { clock: ManualClock; reported: unknown[]; disturbances: DisturbanceThrottle } {
  const clock = new ManualClock();
  const reported: unknown[] = [];
  const listener = { onDisturbed: (which: unknown) => void reported.push(which), onTargetChange: () => undefined };
  return { clock, reported, disturbances: new DisturbanceThrottle(clock, listener) };
}

test('disturbances are reported at once, repeated ones with growing waits', async () => {
  const { clock, reported, disturbances } = fixture();
  for (let count = 0; count < 3; count++) disturbances.add('a', id);
  expect(reported).toEqual([[id], [id], [id]]);
  disturbances.add('a', id);
  disturbances.add('a', id);
  expect(reported).toHaveLength(3);
  await clock.advance(1000);
  expect(reported).toHaveLength(4);
  await clock.advance(1000);
  expect(reported).toHaveLength(5);
  disturbances.add('b', id);
  expect(reported).toHaveLength(6);
});

test('after a quiet minute all is forgiven', async () => {
  const { clock, reported, disturbances } = fixture();
  for (let count = 0; count < 3; count++) disturbances.add('a', id);
  await clock.advance(60_000);
  disturbances.add('a', id);
  expect(reported).toHaveLength(4);
});

test('nothing is reported after the end', async () => {
  const { clock, reported, disturbances } = fixture();
  for (let count = 0; count < 4; count++) disturbances.add('a', id);
  disturbances[Symbol.dispose]();
  await clock.advance(60_000);
  expect(reported).toHaveLength(3);
});
