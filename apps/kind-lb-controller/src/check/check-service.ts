import { ConfigError, type Millis } from '@switchyard/core';
import type { Service } from '@switchyard/core/kubernetes';
import { type KnownProxy, withFastDrain } from '@switchyard/loss';
import { checkWorkload, type Warning, workloadOf, type WorkloadReport } from '@switchyard/loss/workload';
import { defaultHealthProfile, healthProfile } from '../health-profile/health-profiles.ts';
import { type AnnotationProblem, parseAnnotations } from '../plan/annotations.ts';
import type { PlanDefaults, ServiceSettings } from '../plan/settings.ts';
import type { HealthProfile } from '../spec/health-profile.ts';
import type { CheckConfig } from './check-flags.ts';
import type { ClusterObjects } from './read-cluster.ts';

/** The prediction for a Service. Durations in milliseconds. */
export interface CheckReport {
  /** `namespace/name`. */
  readonly service: string;
  /** `spec.type`. */
  readonly type: string;
  readonly policy: 'Cluster' | 'Local';
  readonly proxy: KnownProxy;
  /** Undefined when not given. */
  readonly drain: Millis | undefined;
  /** Whether the load balancer follows EndpointSlices, besides its health checks. */
  readonly isFastDrain: boolean;
  /** Sorted by name. Empty with a warning that says why. */
  readonly deployments: readonly WorkloadReport[];
  /** About the Service itself. */
  readonly warnings: readonly Warning[];
  /** Whether nothing is lost behind any of the profiles, even in the worst case. False without a Deployment. */
  readonly isLossless: boolean;
}

/** Predicts what rollouts of a Service's Deployments cost. Pure. Throws `ConfigError` for a wrong annotation. */
export function checkService(objects: ClusterObjects, config: CheckConfig): CheckReport {
  const { service } = objects;
  const policy = service.spec?.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster';
  const { drain, proxy } = config;
  const { settings, problems } = parseAnnotations(service.metadata?.annotations ?? {}, defaultsOf(config));
  const asked = config.profiles ?? [annotatedProfile(settings, problems)];
  const isDraining = policy === 'Local' && (settings?.isFastDrain ?? config.isFastDrain);
  const profiles = isDraining ? asked.map(withFastDrain) : asked;
  const isFastDrain = isDraining || goesToEndpoints(service, settings);
  const options = { policy, profiles, drain, proxy, isFastDrain } as const;
  const deployments = objects.deployments
    .map((deployment) => checkWorkload(workloadOf(deployment, objects), options))
    .toSorted((a, b) => (a.workload.name < b.workload.name ? -1 : 1));
  const rows = deployments.flatMap((one) => one.rows);
  return {
    service: `${service.metadata?.namespace ?? ''}/${service.metadata?.name ?? ''}`,
    type: service.spec?.type ?? 'ClusterIP',
    policy,
    proxy,
    drain,
    isFastDrain,
    deployments,
    warnings: serviceWarnings(objects, config),
    isLossless: rows.length > 0 && rows.every(({ worst, duration }) => worst === 0 && duration !== undefined),
  };
}

/** Whether the load balancer sends to endpoints because there are no NodePorts: then it always follows their slices. */
function goesToEndpoints({ spec }: Service, settings: ServiceSettings | undefined): boolean {
  const hasNodePort = spec?.ports?.some(({ nodePort }) => nodePort !== undefined) ?? false;
  return spec?.allocateLoadBalancerNodePorts === false && !hasNodePort && settings?.path !== 'transparent';
}

function serviceWarnings({ service, deployments }: ClusterObjects, { namespace }: CheckConfig): readonly Warning[] {
  const warnings: Warning[] = [];
  const type = service.spec?.type ?? 'ClusterIP';
  if (type !== 'LoadBalancer') {
    warnings.push({ reason: 'NoLoadBalancer', message: `type ${type}: no load balancer checks its nodes` });
  }
  if (deployments.length === 0) {
    const selector = Object.entries(service.spec?.selector ?? {}).map(([key, value]) => `${key}=${value}`);
    const message =
      selector.length === 0
        ? 'the Service has no selector; name a --deployment'
        : `no Deployment in ${namespace} has pods labelled ${selector.join(',')}; name a --deployment`;
    warnings.push({ reason: 'NoDeployment', message });
  }
  return warnings;
}

function defaultsOf({ isFastDrain }: CheckConfig): PlanDefaults {
  return {
    healthProfileOf: (name, changes) => healthProfile(name ?? defaultHealthProfile, changes),
    isFastDrain,
    isPublished: false, // clients of the check are on the network
  };
}

/** The profile that the controller uses for this Service, unless its annotations are wrong. */
function annotatedProfile(
  settings: ServiceSettings | undefined,
  problems: readonly AnnotationProblem[],
): HealthProfile {
  if (settings !== undefined) return settings.profile;
  const faults = problems.map(({ name, value, fault }) => `annotation ${name}: ${JSON.stringify(value)}: ${fault}`);
  throw new ConfigError('check.annotation', `${faults.join('; ')}; repair that, or name a --health-check-profile`);
}
