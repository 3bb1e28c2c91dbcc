import { expect, test } from 'vitest';
import { millis } from '../base/time.ts';
import { type Announcement, announcementOf, HealthClients } from './health-clients.ts';

test('failures in a row are counted for each client', () => {
  const clients = new HealthClients();
  for (const [address, isHealthy, time] of [
    ['172.18.0.5', false, 0],
    ['172.18.0.6', true, 10],
    ['172.18.0.5', true, 5000],
    ['172.18.0.5', false, 10_000],
    ['172.18.0.5', false, 15_000],
  ] as const) {
    clients.note(address, { isHealthy, announced: undefined }, millis(time));
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
  for (const time of checks) clients.note('172.18.0.5', { isHealthy: false, announced: undefined }, millis(time));
  expect(clients.current(millis(until))).toHaveLength(1);
  expect(clients.current(millis(until + 1))).toEqual([]);
});

test('the memory is bounded; the one that has been silent for longest is forgotten', () => {
  const clients = new HealthClients();
  const answer = { isHealthy: true, announced: undefined };
  for (let index = 0; index < 101; index++) clients.note(`10.0.0.${index}`, answer, millis(index));
  const addresses = clients.current(millis(101)).map(({ address }) => address);
  expect(addresses).toHaveLength(100);
  expect(addresses).not.toContain('10.0.0.0');
});

test.each<[what: string, notes: readonly (readonly [Announcement | undefined, isHealthy: boolean])[], said: unknown]>([
  ['no word is none', [[undefined, false]], undefined],
  ['`left` counts in answer to a failing check', [['left', false]], 'left'],
  ['`left` does not count in answer to a good one: the client knows before this node', [['left', true]], 'uses'],
  [
    '`left` is said again after the first failing check',
    [
      ['left', true],
      ['left', false],
    ],
    'left',
  ],
  [
    'checks without a word leave it',
    [
      ['left', false],
      [undefined, false],
    ],
    'left',
  ],
  [
    'a good answer takes `left` back, also one to a check without a word',
    [
      ['left', false],
      [undefined, true],
      [undefined, false],
    ],
    'uses',
  ],
  [
    '`uses` takes `left` back',
    [
      ['left', false],
      ['uses', false],
    ],
    'uses',
  ],
])('of announcements, %s', (_, notes, said) => {
  const clients = new HealthClients();
  for (const [announced, isHealthy] of notes) clients.note('172.18.0.5', { isHealthy, announced }, millis(0));
  expect(clients.current(millis(0)).map((one) => one.announced)).toEqual([said]);
});

test('an announcement that is not repeated for 15 s counts no more, while the client goes on checking', () => {
  const clients = new HealthClients();
  clients.note('172.18.0.5', { isHealthy: false, announced: 'uses' }, millis(0));
  clients.note('172.18.0.5', { isHealthy: false, announced: undefined }, millis(14_000));
  expect(clients.current(millis(15_000))).toEqual([{ address: '172.18.0.5', failures: 2, announced: 'uses' }]);
  expect(clients.current(millis(15_001))).toEqual([{ address: '172.18.0.5', failures: 2 }]);
});

test.each([
  ['uses', 'uses'],
  ['left', 'left'],
  ['Left', undefined],
  [undefined, undefined],
])('the header %s announces %s', (text, announced) => {
  expect(announcementOf({ 'switchyard-load-balancer': text })).toBe(announced);
});
