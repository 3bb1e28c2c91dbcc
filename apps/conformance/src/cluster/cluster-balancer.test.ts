import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { balancerMoments } from './cluster-balancer.ts';

const at = (time: number, node: string, status: number) => ({ at: millis(time), node, status });

/** `14000 n1 down` */
function moments(health: ReturnType<typeof at>[], now: number): readonly string[] {
  return balancerMoments(health, millis(now)).map((one) => `${one.at} ${one.node} ${one.isUp ? 'up' : 'down'}`);
}

test('a load balancer leaves a node whose health check fails for 15 s', () => {
  const health = [at(0, 'n1', 200), at(0, 'n2', 503), at(9_000, 'n1', 503)];
  expect(moments(health, 14_000)).toEqual(['0 n1 up']);
  expect(moments(health, 30_000)).toEqual(['0 n1 up', '15000 n2 down', '24000 n1 down']);
});

test('a health check that fails for a moment changes nothing', () => {
  const health = [at(0, 'n1', 200), at(1_000, 'n1', 0), at(2_000, 'n1', 503), at(3_000, 'n1', 200)];
  expect(moments(health, 60_000)).toEqual(['0 n1 up', '3000 n1 up']);
});
