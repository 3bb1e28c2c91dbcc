import { expect, test } from 'vitest';
import { seconds } from '@switchyard/core';
import { preStopOf } from './pre-stop.ts';

const exec = (...command: readonly string[]) => ({ lifecycle: { preStop: { exec: { command: [...command] } } } });

test.each([
  ['the sleep action', { lifecycle: { preStop: { sleep: { seconds: 5 } } } }, 5],
  ['a sleep command', exec('sleep', '5'), 5],
  ['one with its folder and a unit', exec('/bin/sleep', '1.5m'), 90],
  ['several durations', exec('sleep', '1m', '5'), 65],
  ['a shell', exec('sh', '-c', 'sleep 5'), 5],
  ['another shell with more options', exec('/bin/bash', '-e', '-c', 'exec sleep 5'), 5],
  ['two sleeps', exec('sh', '-c', 'sleep 5; sleep 2s'), 7],
  ['a sleep among words', exec('sh', '-c', 'echo bye && /usr/bin/sleep 5; exit 0'), 5],
])('preStopOf knows the duration of %s', (_, container, duration) => {
  expect(preStopOf(container)).toEqual({ kind: 'sleep', duration: seconds(duration) });
});

test.each<[what: string, container: Parameters<typeof preStopOf>[0], said: string, atLeast?: number]>([
  ['another program', exec('/drain.sh'), '/drain.sh'],
  ['a sleep after something that may last', exec('sh', '-c', 'nginx -s quit; sleep 5'), 'sh -c nginx -s quit; sleep 5'],
  ['a program of a similar name', exec('/x/switchyard-drain-hook.sh'), '/x/switchyard-drain-hook.sh'],
  ['a sleep of a variable', exec('sh', '-c', 'sleep $DELAY'), 'sh -c sleep $DELAY'],
  ['a sleep without duration', exec('sleep'), 'sleep'],
  ['a request', { lifecycle: { preStop: { httpGet: { path: '/drain', port: 80 } } } }, 'GET /drain'],
  ['something after a sleep', exec('sh', '-c', 'sleep 5; nginx -s quit'), 'sh -c sleep 5; nginx -s quit', 5],
  ['a wrapped hook', exec('sh', '-c', 'sleep 3; exec "$@"', 'sh', '/x'), 'sh -c sleep 3; exec "$@" sh /x', 3],
])('preStopOf does not guess the duration of %s', (_, container, what, atLeast = 0) => {
  expect(preStopOf(container)).toEqual({ kind: 'unknown', atLeast: seconds(atLeast), what });
});

test.each([
  ['a command', exec('sh', '-c', 'wget -qO- "http://gate:10247/drain?pod=$POD_IP"'), 20],
  ['one with a limit', exec('sh', '-c', 'wget -qO- "http://gate:10247/drain?pod=$POD_IP&seconds=90"'), 90],
  ['a request', { lifecycle: { preStop: { httpGet: { path: '/drain?pod=10.0.0.1&seconds=5', port: 10_247 } } } }, 5],
  ['its program', exec('/switchyard/usr/local/bin/switchyard-drain-hook'), 20],
  ['its program with a limit', exec('switchyard-drain-hook', '--gate', 'gate:1', '--seconds', '60'), 60],
  ['its program in a shell', exec('sh', '-c', 'switchyard-drain-hook; sleep --seconds 90'), 20],
])('preStopOf knows the drain gate behind %s', (_, container, longest) => {
  expect(preStopOf(container)).toMatchObject({ kind: 'gate', longest: seconds(longest) });
});

test('preStopOf a container without hook is none', () => {
  expect(preStopOf({})).toEqual({ kind: 'none' });
});
