import { parseCidr, parseIp } from '@switchyard/core';
import { type ScriptedCommand, ScriptedRunner } from '@switchyard/host/testing';
import { describe, expect, test } from 'vitest';
import type { RouteSpec } from '../spec/load-balancer-spec.ts';
import { newTargetRoutes, parseRoutes } from './target-routes.ts';

const { signal } = new AbortController();
const ip = (line: string, stdout = ''): ScriptedCommand => ({ file: 'ip', args: line.split(' '), answer: { stdout } });
const show = (...routes: readonly string[]): readonly ScriptedCommand[] => [
  ip('-4 route show proto 83 dev eth0', routes.map((route) => `${route} \n`).join('')),
];
const nothing6 = ip('-6 route show proto 83 dev eth0');
const route = (destination: string, via: string): RouteSpec => ({
  destination: parseCidr(destination),
  via: parseIp(via),
});

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

describe('apply', () => {
  const rows: readonly (readonly [string, readonly string[], readonly RouteSpec[], readonly ScriptedCommand[]])[] = [
    [
      'nothing is written where all is right',
      ['10.244.1.0/24 via 172.18.0.11'],
      [route('10.244.1.0/24', '172.18.0.11')],
      [],
    ],
    [
      'a new one is added, so that one of others is never replaced',
      [],
      [route('10.244.1.0/24', '172.18.0.11')],
      [ip('-4 route add 10.244.1.0/24 via 172.18.0.11 dev eth0 proto 83'), ...show('10.244.1.0/24 via 172.18.0.11')],
    ],
    [
      'one that leads through another node now is replaced',
      ['10.244.1.0/24 via 172.18.0.11'],
      [route('10.244.1.0/24', '172.18.0.12')],
      [
        ip('-4 route replace 10.244.1.0/24 via 172.18.0.12 dev eth0 proto 83'),
        ...show('10.244.1.0/24 via 172.18.0.12'),
      ],
    ],
    [
      'an unwanted one is removed',
      ['10.244.1.0/24 via 172.18.0.11'],
      [],
      [ip('-4 route del 10.244.1.0/24 via 172.18.0.11 dev eth0 proto 83')],
    ],
  ];
  test.each(rows)('%s', async (_, before, wanted, commands) => {
    const runner = new ScriptedRunner([...show(...before), ...commands, nothing6]);
    const routes = newTargetRoutes({ runner, netns: undefined, interfaceName: 'eth0' });
    expect(await routes.apply(wanted, signal)).toBe(commands.length === 0 ? 'unchanged' : 'applied');
    runner.assertDone();
  });
});
