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

test.each([
  ['another program', exec('/drain.sh'), '/drain.sh'],
  ['a sleep after something that may last', exec('sh', '-c', 'nginx -s quit; sleep 5'), 'sh -c nginx -s quit; sleep 5'],
  ['a sleep of a variable', exec('sh', '-c', 'sleep $DELAY'), 'sh -c sleep $DELAY'],
  ['a sleep without duration', exec('sleep'), 'sleep'],
  ['a request', { lifecycle: { preStop: { httpGet: { path: '/drain', port: 80 } } } }, 'GET /drain'],
])('preStopOf does not guess the duration of %s', (_, container, what) => {
  expect(preStopOf(container)).toEqual({ kind: 'unknown', what });
});

test('preStopOf a container without hook is none', () => {
  expect(preStopOf({})).toEqual({ kind: 'none' });
});
