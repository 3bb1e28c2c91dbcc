import { ConfigError, millis, seconds } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { detectionTime, healthProfile } from './health-profiles.ts';
import { positiveDuration } from '../config/positive-duration.ts';

test('cloud-provider-kind checks every 5 s, gives up after 3 failures and comes back after 1 success', () => {
  expect(healthProfile('cloud-provider-kind')).toMatchObject({ interval: 5000, fall: 3, rise: 1, clusterPort: 10256 });
});

test('parameters replace those of the profile', () => {
  expect(healthProfile('cloud-provider-kind', { interval: millis(500) })).toMatchObject({ interval: 500, fall: 3 });
});

test.each([
  ['an unknown profile', 'aws', {}],
  ['no failures at all', 'cloud-provider-kind', { fall: 0 }],
  ['half a success', 'cloud-provider-kind', { rise: 1.5 }],
  ['a count that is no number', 'cloud-provider-kind', { rise: Number.NaN }],
])('%s is refused', (_, name, changes) => {
  expect(() => healthProfile(name, changes)).toThrow(ConfigError);
});

test('an app must go on serving for interval times fall', () => {
  expect(detectionTime(healthProfile('cloud-provider-kind'))).toBe(seconds(15));
});

describe('positiveDuration', () => {
  test.each([
    ['5s', 5000],
    ['500ms', 500],
    ['1.5s', 1500],
    ['1m30s', 90_000],
    ['0.5ms', 0.5],
    ['.5s', 500],
  ])('%s is %d ms', (text, expected) => {
    expect(positiveDuration(text, '--flag')).toBe(expected);
  });
  test.each(['', '5', 's', '-5s', '5 s', '0s', '5d', '5s!', '1e3s'])(
    '%j is refused with the name of the flag',
    (text) => {
      expect(() => positiveDuration(text, '--flag')).toThrow(/^--flag: not a positive duration/);
    },
  );
});
