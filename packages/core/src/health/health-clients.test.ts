import { expect, test } from 'vitest';
import { millis } from '../base/time.ts';
import { HealthClients } from './health-clients.ts';

test('failures in a row are counted for each client', () => {
  const clients = new HealthClients();
  for (const [address, isHealthy, time] of [
    ['172.18.0.5', false, 0],
    ['172.18.0.6', true, 10],
    ['172.18.0.5', true, 5000],
    ['172.18.0.5', false, 10_000],
    ['172.18.0.5', false, 15_000],
  ] as const) {
    clients.note(address, isHealthy, millis(time));
  }
  expect(clients.current(millis(15_000))).toEqual([
    { address: '172.18.0.6', failures: 0 },
    { address: '172.18.0.5', failures: 2 },
  ]);
});

test.each([
  ['that checked once counts for two minutes', [0], 120_000],
  ['counts until it missed three checks', [0, 10_000], 40_000],
  ['that is quick counts for 15 s', [0, 200], 15_200],
])('a client %s', (_, checks, until) => {
  const clients = new HealthClients();
  for (const time of checks) clients.note('172.18.0.5', false, millis(time));
  expect(clients.current(millis(until))).toHaveLength(1);
  expect(clients.current(millis(until + 1))).toEqual([]);
});

test('the memory is bounded; the one that has been silent for longest is forgotten', () => {
  const clients = new HealthClients();
  for (let index = 0; index < 101; index++) clients.note(`10.0.0.${index}`, true, millis(index));
  const addresses = clients.current(millis(101)).map(({ address }) => address);
  expect(addresses).toHaveLength(100);
  expect(addresses).not.toContain('10.0.0.0');
});
