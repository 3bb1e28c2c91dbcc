import { ConfigError, type Millis, parsePort, type Port, seconds } from '@switchyard/core';

/** How a load balancer finds out whether a node may get traffic. */
export interface HealthProfile {
  /** Pause between two checks of one node. */
  readonly interval: Millis;
  /** Failed checks in a row until a node that is UP is taken out. */
  readonly fall: number;
  /** Good checks in a row until a node that is DOWN is used again. */
  readonly rise: number;
  /** Longest wait for the answer to a check once connected; undefined: the check must be over within `interval`. */
  readonly timeout: Millis | undefined;
  /** Longest wait for a connection to a node, for traffic; checks use it too where it is less than `interval`. */
  readonly connectTimeout: Millis;
  /** Where `externalTrafficPolicy: Cluster` is checked: the proxy's own health. `Local` has a port per Service. */
  readonly clusterPort: Port;
}

/** The named profiles. */
export type HealthProfileName = 'cloud-provider-kind';

/**
 * `cloud-provider-kind`: what its first releases, which ran HAProxy, did. 10 to 15 s to notice a node that fails,
 * up to 5 s to notice one that works.
 */
export const healthProfiles: Readonly<Record<HealthProfileName, HealthProfile>> = {
  'cloud-provider-kind': {
    interval: seconds(5),
    fall: 3,
    rise: 1,
    timeout: undefined,
    connectTimeout: seconds(5),
    clusterPort: parsePort(10256),
  },
};

/** A named profile with some of its parameters replaced. Throws `ConfigError` for an unknown name or a count below 1. */
export function healthProfile(name: string, changes: Partial<HealthProfile> = {}): HealthProfile {
  if (!isProfileName(name)) {
    const known = Object.keys(healthProfiles).join(', ');
    throw new ConfigError('health-profile.unknown', `no health-check profile is called '${name}'; there is ${known}`);
  }
  const profile = { ...healthProfiles[name], ...changes };
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
