import { millis } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { healthCheckFlags, healthCheckOf, type ProfileChanges, profiles } from './profiles.ts';

function flagsOf(name: string, changes: ProfileChanges = {}, timeScale = 1): readonly string[] {
  const profile = profiles.find((one) => one.name === name);
  if (profile === undefined) throw new Error(`no profile ${name}`);
  return healthCheckFlags(healthCheckOf(profile, changes, timeScale));
}

describe('flags of the load balancer', () => {
  test.each(profiles.map(({ name }) => name))('only the name of %s, unscaled and unchanged', (name) => {
    expect(flagsOf(name)).toEqual([`--health-check-profile=${name}`]);
  });

  test('what was changed', () => {
    expect(flagsOf('cloud-provider-kind', { interval: millis(2000), fall: 1, rise: 2 })).toEqual([
      '--health-check-profile=cloud-provider-kind',
      '--health-check-interval=2000ms',
      '--health-check-fall=1',
      '--health-check-rise=2',
    ]);
  });

  test('every duration of a scaled profile that it would not find by itself', () => {
    expect(flagsOf('switchyard-fast', {}, 0.2)).toEqual([
      '--health-check-profile=switchyard-fast',
      '--health-check-interval=100ms',
      '--health-check-down-interval=50ms',
      '--health-check-timeout=200ms',
    ]);
    expect(flagsOf('cloud-provider-kind', {}, 0.2)).toEqual([
      '--health-check-profile=cloud-provider-kind',
      '--health-check-interval=1000ms',
    ]);
  });

  test('none for DOWN nodes where they are checked no less often than UP nodes', () => {
    expect(flagsOf('switchyard', { interval: millis(100) })).toEqual([
      '--health-check-profile=switchyard',
      '--health-check-interval=100ms',
    ]);
  });
});
