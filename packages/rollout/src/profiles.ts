import { execFileSync } from 'node:child_process';
import { type CheckTiming, HostError, messageOf, type Millis, millis } from '@switchyard/core';
import type { HealthCheck } from './run-record.ts';
import { programPath } from './stage/programs.ts';

/** A named profile of the load balancer, unscaled. */
export interface Profile extends CheckTiming {
  readonly name: string;
}

/** The profiles that the load-balancer program of this checkout has, in its order. Rejects nothing: throws when it does not run. */
export function readProfiles(): readonly Profile[] {
  const program = programPath('switchyard-lb');
  try {
    const text = execFileSync(program, ['profiles', '--output=json'], { encoding: 'utf8', stdio: 'pipe' });
    return JSON.parse(text) as readonly Profile[];
  } catch (cause) {
    throw new HostError(
      'rollout.profiles',
      `${program} profiles --output=json did not tell the profiles: ${messageOf(cause)}`,
      {
        cause,
      },
    );
  }
}

/** Parts of a profile that flags replace, unscaled. */
export interface ProfileChanges {
  readonly interval?: Millis;
  readonly fall?: number;
  readonly rise?: number;
}

/** A profile with changes, all durations times `timeScale` but `lastUpFor`, which the load balancer takes from the profile. A changed interval also holds for nodes that are DOWN, where they had the same. */
export function healthCheckOf(profile: Profile, changes: ProfileChanges, timeScale: number): HealthCheck {
  const scaled = (time: Millis): Millis => millis(time * timeScale);
  const interval = changes.interval ?? profile.interval;
  const downInterval = profile.downInterval === profile.interval ? interval : profile.downInterval;
  return {
    profile: profile.name,
    interval: scaled(interval),
    downInterval: scaled(downInterval),
    fall: changes.fall ?? profile.fall,
    rise: changes.rise ?? profile.rise,
    timeout: profile.timeout === undefined ? undefined : scaled(profile.timeout),
    whenNoneUp: profile.whenNoneUp,
    lastUpFor: profile.lastUpFor,
  };
}
