import { ConfigError, isEqual, type Millis, parsePort, seconds } from '@switchyard/core';
import { type KnownCheck, knownChecks } from '@switchyard/loss';
import type { HealthProfile } from '../spec/health-profile.ts';

/** The named profiles. What each simulates, and where its figures come from, is said at `knownChecks`. */
export type HealthProfileName = KnownCheck;

/** The default profile: kind simulates, so it behaves like cloud-provider-kind. */
export const defaultHealthProfile: HealthProfileName = 'cloud-provider-kind';

/** All profiles by name, in the order in which people are to read them. */
export const healthProfiles: Readonly<Record<HealthProfileName, HealthProfile>> = profilesOf(knownChecks);

/**
 * A named profile with some of its parameters replaced; then it is called `<name>, changed`. A new interval is that of DOWN nodes too
 * where the profile checks both alike. Throws `ConfigError` for an unknown name or a count below 1.
 */
export function healthProfile(name: string, changes: Partial<HealthProfile> = {}): HealthProfile {
  if (!isProfileName(name)) {
    const known = Object.keys(healthProfiles).join(', ');
    throw new ConfigError('health-profile.unknown', `no health-check profile is called '${name}'; there is ${known}`);
  }
  const named = healthProfiles[name];
  const interval = changes.interval ?? named.interval;
  // A DOWN node is never asked less often than one that is UP.
  const downInterval = named.downInterval === named.interval ? interval : lesser(named.downInterval, interval);
  const profile = { ...named, downInterval, ...changes };
  for (const count of ['fall', 'rise'] as const) {
    if (!Number.isInteger(profile[count]) || profile[count] < 1) {
      throw new ConfigError('health-profile.count', `--${count}: not a whole number of at least 1: ${profile[count]}`);
    }
  }
  return isEqual(profile, named) ? named : { ...profile, name: changes.name ?? `${name}, changed` };
}

function profilesOf(checks: typeof knownChecks): Readonly<Record<HealthProfileName, HealthProfile>> {
  const profiles = Object.entries(checks).map(([name, timing]): [string, HealthProfile] => [
    name,
    { name, ...timing, connectTimeout: seconds(5), clusterPort: parsePort(10256) },
  ]);
  return Object.fromEntries(profiles) as Record<HealthProfileName, HealthProfile>; // fromEntries forgets the names
}

function lesser(a: Millis, b: Millis): Millis {
  return a < b ? a : b;
}

function isProfileName(name: string): name is HealthProfileName {
  return Object.hasOwn(healthProfiles, name);
}
