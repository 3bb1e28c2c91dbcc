import { ConfigError, millis, seconds } from '@switchyard/core';
import { noneUpProbability, takenOutAfter } from '@switchyard/loss';
import { describe, expect, test } from 'vitest';
import { healthProfile, healthProfiles, type HealthProfileName } from './health-profiles.ts';
import { positiveDuration } from '../config/flag-value.ts';

describe('healthProfile', () => {
  test('of cloud-provider-kind checks every 5 s, gives up after 3 failures and comes back after 1 success', () => {
    expect(healthProfile('cloud-provider-kind')).toMatchObject({
      interval: 5000,
      fall: 3,
      rise: 1,
      clusterPort: 10256,
    });
  });
  test('with parameters replaces those of the profile, and says so in its name', () => {
    expect(healthProfile('cloud-provider-kind', { fall: 2 })).toMatchObject({
      name: 'cloud-provider-kind, changed',
      interval: 5000,
      fall: 2,
    });
  });
  test('with the parameters that the profile has anyway is the profile', () => {
    expect(healthProfile('cloud-provider-kind', { interval: seconds(5), fall: 3 })).toBe(
      healthProfiles['cloud-provider-kind'],
    );
  });
  test.each<[what: string, name: HealthProfileName, interval: number, downInterval: number]>([
    ['asks DOWN nodes as often, where the profile does', 'cloud-provider-kind', 500, 500],
    ['leaves DOWN nodes alone, where the profile asks those more often', 'switchyard', 5000, 250],
    ['never asks DOWN nodes less often', 'switchyard', 100, 100],
  ])('with another interval %s', (_, name, interval, downInterval) => {
    expect(healthProfile(name, { interval: millis(interval) }).downInterval).toBe(downInterval);
  });
  test.each([
    ['an unknown profile', 'aws', {}],
    ['no failures at all', 'cloud-provider-kind', { fall: 0 }],
    ['half a success', 'cloud-provider-kind', { rise: 1.5 }],
    ['a count that is no number', 'cloud-provider-kind', { rise: Number.NaN }],
  ])('refuses %s', (_, name, changes) => {
    expect(() => healthProfile(name, changes)).toThrow(ConfigError);
  });
});

test.each<[name: HealthProfileName, notice: number, detection: number]>([
  ['cloud-provider-kind', 10, 15],
  ['cloud-provider-kind-envoy', 0, 2],
  ['aws-nlb', 10, 20],
  ['aws-nlb-default', 30, 60],
  ['google-nlb', 16, 24],
  ['azure-lb', 5, 10],
  ['digitalocean-lb', 6, 9],
  ['oci-lb', 20, 30],
  ['switchyard', 0, 2],
  ['switchyard-fast', 0.5, 1],
])('%s takes a node out %d to %d s after its first failing answer', (name, notice, detection) => {
  expect(takenOutAfter(healthProfiles[name])).toEqual({ shortest: seconds(notice), longest: seconds(detection) });
});

describe('while the only pod moves to another node', () => {
  const quickest = millis(0);
  test.each<HealthProfileName>(['switchyard', 'switchyard-fast'])('%s always has a node UP', (name) => {
    expect(noneUpProbability(healthProfiles[name], quickest)).toBe(0);
  });
  test.each<[name: HealthProfileName, isPossible: boolean]>([
    ['cloud-provider-kind', false],
    ['cloud-provider-kind-envoy', true],
    ['aws-nlb', true],
    ['aws-nlb-default', true],
    ['google-nlb', false],
    ['azure-lb', true],
    ['digitalocean-lb', true],
    ['oci-lb', true],
  ])('%s, faithful, may do so: %s', (name, isPossible) => {
    expect(noneUpProbability(healthProfiles[name], quickest) > 0).toBe(isPossible);
  });
  test('those that fail open in production do so here, those that close connections close them', () => {
    const named = (wanted: string): readonly string[] =>
      Object.values(healthProfiles).flatMap(({ name, whenNoneUp }) => (whenNoneUp === wanted ? [name] : []));
    expect(named('all')).toEqual(['aws-nlb', 'aws-nlb-default', 'google-nlb']);
    expect(named('lastUp')).toEqual(['switchyard', 'switchyard-fast']);
  });
  test('others’ profiles ask DOWN nodes no more often', () => {
    const others = Object.values(healthProfiles).filter(({ name }) => !name.startsWith('switchyard'));
    expect(others.every(({ interval, downInterval }) => interval === downInterval)).toBe(true);
  });
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
