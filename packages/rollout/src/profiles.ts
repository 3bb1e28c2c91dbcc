import { type CheckTiming, knownChecks } from '@switchyard/loss';
import { type Millis, millis } from '@switchyard/core';
import type { HealthCheck } from './run-record.ts';

/** A named profile of the load balancer, unscaled. */
export interface Profile extends CheckTiming {
  readonly name: string;
}

/** The profiles that `--health-check-profile` of the load balancer has, in the order in which people are to read them. */
export const profiles: readonly Profile[] = Object.entries(knownChecks).map(([name, timing]) => ({ name, ...timing }));

/** Parts of a profile that flags replace, unscaled. */
export type ProfileChanges = Partial<Pick<CheckTiming, 'interval' | 'fall' | 'rise'>>;

/**
 * A profile with changes, all durations times `timeScale` but `lastUpFor`, which the load balancer takes from the profile. DOWN nodes are checked as
 * often as the load balancer does with the same flags.
 */
export function healthCheckOf(profile: Profile, changes: ProfileChanges, timeScale: number): HealthCheck {
  const scaled = (time: Millis): Millis => millis(time * timeScale);
  const interval = changes.interval ?? profile.interval;
  const isAlike = profile.downInterval === profile.interval;
  return {
    profile: profile.name,
    interval: scaled(interval),
    downInterval: scaled(isAlike ? interval : millis(Math.min(profile.downInterval, interval))),
    fall: changes.fall ?? profile.fall,
    rise: changes.rise ?? profile.rise,
    timeout: profile.timeout === undefined ? undefined : scaled(profile.timeout),
    whenNoneUp: profile.whenNoneUp,
    lastUpFor: profile.lastUpFor,
  };
}

/** The load balancer's flags for these health checks: the profile and all values that differ from it. */
export function healthCheckFlags(healthCheck: HealthCheck): readonly string[] {
  const { profile, interval, downInterval, fall, rise, timeout } = healthCheck;
  const named = profiles.find(({ name }) => name === profile);
  const flag = (name: string, value: Millis | undefined): readonly string[] =>
    value === undefined ? [] : [`--health-check-${name}=${Math.round(value)}ms`];
  return [
    `--health-check-profile=${profile}`,
    ...(interval === named?.interval ? [] : flag('interval', interval)),
    ...(downInterval === named?.downInterval || downInterval === interval ? [] : flag('down-interval', downInterval)),
    ...(fall === named?.fall ? [] : [`--health-check-fall=${fall}`]),
    ...(rise === named?.rise ? [] : [`--health-check-rise=${rise}`]),
    ...(timeout === named?.timeout ? [] : flag('timeout', timeout)),
  ];
}
