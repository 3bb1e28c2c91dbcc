import { expect, test } from 'vitest';
import { parseRoutes } from './target-routes.ts';

test('routes are read as they are wanted', () => {
  const text = [
    '10.244.1.0/24 via 172.18.0.11 proto 83 ',
    '10.244.2.7 via 172.18.0.12 dev eth0 proto 83 ',
    'fd00:10:244:1::/64 via fd00:172:18::11 metric 1024 pref medium',
    '172.18.0.0/24 dev eth0 scope link',
  ].join('\n');
  expect(parseRoutes(text)).toEqual([
    '10.244.1.0/24 via 172.18.0.11',
    '10.244.2.7/32 via 172.18.0.12',
    'fd00:10:244:1::/64 via fd00:172:18::11',
  ]);
});
