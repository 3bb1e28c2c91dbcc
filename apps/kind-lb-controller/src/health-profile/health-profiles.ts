import { ConfigError, type Millis, millis, parsePort, seconds } from '@switchyard/core';
import type { HealthProfile } from '../spec/health-profile.ts';

/** The named profiles. */
export type HealthProfileName = 'cloud-provider-kind';

/**
 * `cloud-provider-kind`: what its first releases, which ran HAProxy, did. 10 to 15 s to notice a node that fails,
 * up to 5 s to notice one that works.
 */
export const healthProfiles: Readonly<Record<HealthProfileName, HealthProfile>> = {
  'cloud-provider-kind': {
    name: 'cloud-provider-kind',
    interval: seconds(5),
    fall: 3,
    rise: 1,
    downInterval: seconds(5),
    timeout: undefined,
    connectTimeout: seconds(5),
    clusterPort: parsePort(10256),
    whenNoneUp: 'close',
    lastUpFor: millis(0),
  },
};

/** A named profile with some of its parameters replaced. Throws `ConfigError` for an unknown name or a count below 1. */
export function healthProfile(name: string, changes: Partial<HealthProfile> = {}): HealthProfile {
  if (!isProfileName(name)) {
    const known = Object.keys(healthProfiles).join(', ');
    throw new ConfigError('health-profile.unknown', `no health-check profile is called '${name}'; there is ${known}`);
  }
  const interval = changes.interval ?? healthProfiles[name].interval;
  const profile = { ...healthProfiles[name], downInterval: interval, ...changes };
  for (const count of ['fall', 'rise'] as const) {
    if (!Number.isInteger(profile[count]) || profile[count] < 1) {
      throw new ConfigError('health-profile.count', `--${count}: not a whole number of at least 1: ${profile[count]}`);
    }
  }
  return profile;
}

/**
 * Longest time from a node's first failing answer until the load balancer has taken it out: the check may just
 * have passed. An app must go on serving for longer than this.
 */
export function detectionTime({ interval, fall }: HealthProfile): Millis {
  return seconds((interval * fall) / 1000);
}

function isProfileName(name: string): name is HealthProfileName {
  return Object.hasOwn(healthProfiles, name);
}
