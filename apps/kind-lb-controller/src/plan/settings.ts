import type { Millis, ServiceRecord } from '@switchyard/core';
import type { HealthProfile } from '../spec/health-profile.ts';
import type { ForwardingPath, LoadBalancerSpec } from '../spec/load-balancer-spec.ts';

/** Parameters of a health-check profile that an annotation of a Service replaces. Absent: as the profile has it. */
export interface HealthCheckChanges {
  readonly interval?: Millis;
  readonly downInterval?: Millis;
  readonly fall?: number;
  readonly rise?: number;
  readonly timeout?: Millis;
}

/**
 * The profile of a name with some of its parameters replaced. No name: the controller's own, with what its flags replace.
 * Throws `ConfigError` if there is no such profile, or it cannot be changed so.
 */
export type HealthProfileOf = (name: string | undefined, changes: HealthCheckChanges) => HealthProfile;

/** Settings for all Services, from the controller's flags. */
export interface PlanDefaults {
  readonly healthProfileOf: HealthProfileOf;
  /** Whether `lb.switchyard.dev/fast-drain` counts as true where it is not set. */
  readonly isFastDrain: boolean;
  /** Whether Service ports are also published on the machine itself. */
  readonly isPublished: boolean;
}

/** Settings of one Service, from its annotations and the flags. */
export interface ServiceSettings {
  readonly profile: HealthProfile;
  readonly path: ForwardingPath;
  readonly proxyProtocol: LoadBalancerSpec['proxyProtocol'];
  /** Whether a node is drained as soon as EndpointSlices say so, before any check fails (`externalTrafficPolicy: Local`). */
  readonly isFastDrain: boolean;
}

/** Whether nodes of this Service's load balancer are drained by EndpointSlices; with `Cluster` every node goes on serving. */
export function isFastDrained(
  { externalTrafficPolicy }: Pick<ServiceRecord, 'externalTrafficPolicy'>,
  { isFastDrain }: Pick<ServiceSettings, 'isFastDrain'>,
): boolean {
  return isFastDrain && externalTrafficPolicy === 'Local';
}
