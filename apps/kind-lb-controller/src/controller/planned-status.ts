import type { V1LoadBalancerIngress } from '@kubernetes/client-node';
import type { IpAddress, Port, Protocol, ServiceRecord } from '@switchyard/core';
import { effectiveProfileText } from '../health-profile/profile-text.ts';
import { checkPortOf } from '../plan/plan-service.ts';
import { excludedNodesText, type Problem, problemPort, problemText } from '../plan/problem.ts';
import type { PlannedState, ServicePlan } from '../plan/service-plan.ts';
import { isFastDrained } from '../plan/settings.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import { type DesiredCondition, type DesiredStatus, portsConditionType, readyConditionType } from './service-status.ts';

/** A load balancer that runs, and what it was planned from. */
export type PlannedRun = Pick<Extract<PlannedState, { readonly status: 'run' }>, 'spec' | 'settings'>;

/** Place of a load balancer, from the runtime's outcome. */
export interface RunningPlace {
  readonly where: string;
  readonly published: readonly string[];
}

/** Prefix of our error names in `ingress[].ports[].error`; names without one are Kubernetes' own. */
const errorPrefix = 'switchyard.dev/';
/** The API server's limit for a condition's message. */
const maxMessage = 32_768;

/** The status of a Service whose load balancer runs as planned. Problems for the owner come first in the condition's message. */
export function runningStatus(
  plan: Pick<ServicePlan, 'service' | 'problems' | 'excludedNodes'>,
  { spec, settings }: PlannedRun,
  place: RunningPlace,
): DesiredStatus {
  const { record } = plan.service;
  const served = spec.addresses.filter((address) => spec.ports.some(({ addresses }) => addresses.includes(address)));
  const unmet = unmetReason(plan.problems, spec);
  const problems = plan.problems.map((problem) => problemText(problem, spec.id.cluster));
  const text = [
    ...(unmet === undefined ? [] : problems),
    `${spec.profile.name}: ${effectiveProfileText(spec.profile, checkPortOf(record, settings) ?? spec.profile.clusterPort)}`,
    ...(isFastDrained(record, settings) ? ['fast drain: nodes are out as soon as their endpoints terminate'] : []),
    place.where,
    ...(place.published.length === 0 ? [] : [`published ${place.published.join(', ')}`]),
    // Where no node is left, the problem names them.
    ...(plan.excludedNodes.length === 0 || unmet === 'NoNodes'
      ? []
      : [`left out: ${excludedNodesText(plan.excludedNodes)}`]),
    ...(unmet === undefined ? problems : []),
  ].join('; ');
  return {
    ingress: served.map((address) => ingressOf(address, record, { spec, problems: plan.problems })),
    conditions: [
      ...portsCondition(plan.problems, spec.id.cluster),
      readyCondition(unmet === undefined ? 'True' : 'False', unmet ?? 'Serving', text),
    ],
  };
}

/** Reason why a load balancer cannot be made. */
export interface Failure {
  /** CamelCase and stable. */
  readonly reason: string;
  readonly message: string;
  /** Whether the load balancer was removed; otherwise the previous one runs on, and its addresses stay announced. */
  readonly isGone: boolean;
  /** Cluster of the Service. */
  readonly cluster: string;
}

/** The status of a Service whose load balancer cannot be made. */
export function failedStatus(
  { problems }: Pick<ServicePlan, 'problems'>,
  { reason, message, isGone, cluster }: Failure,
): DesiredStatus {
  return {
    ingress: isGone ? [] : undefined,
    conditions: [...portsCondition(problems, cluster), readyCondition('False', reason, message)],
  };
}

/** The reason for a plan that does not run, in the words of conditions. */
export function refusalReason(problems: readonly Problem[]): string {
  if (problems.some(isInvalid)) return 'InvalidConfiguration';
  const [first] = problems;
  return first === undefined ? 'NotServed' : capitalised(first.kind);
}

/** Whether the owner must correct the Service itself. */
function isInvalid({ kind }: Problem): boolean {
  return kind === 'annotation' || kind === 'noHealthCheckNodePort' || kind === 'requestedIp';
}

/** Reason why a running load balancer is not Ready; undefined when it is. One working family suffices. */
function unmetReason(problems: readonly Problem[], { ports }: LoadBalancerSpec): string | undefined {
  if (problems.some(({ kind }) => kind === 'annotation')) return 'InvalidConfiguration';
  if (ports.some(({ targets }) => targets.length > 0)) return undefined;
  if (problems.some(({ kind }) => kind === 'noNodes')) return 'NoNodes';
  if (problems.some(({ kind }) => kind === 'noEndpoints')) return 'NoEndpoints';
  return undefined;
}

function readyCondition(status: 'True' | 'False', reason: string, message: string): DesiredCondition {
  return { type: readyConditionType, status, reason, message: message.slice(0, maxMessage) };
}

function portsCondition(problems: readonly Problem[], cluster: string): readonly DesiredCondition[] {
  const ofPorts = problems.filter(isPortError);
  const [first] = ofPorts;
  if (first === undefined) return [];
  const kinds = new Set(ofPorts.map(({ kind }) => kind));
  const reason = kinds.size === 1 ? capitalised(first.kind) : 'SeveralProblems';
  const message = ofPorts.map((problem) => problemText(problem, cluster)).join('; ');
  return [{ type: portsConditionType, status: 'True', reason, message: message.slice(0, maxMessage) }];
}

/** A port without endpoints at the moment is in order. */
function isPortError(problem: Problem): boolean {
  return problemPort(problem) !== undefined && problem.kind !== 'noEndpoints';
}

interface IngressContext {
  readonly spec: LoadBalancerSpec;
  readonly problems: readonly Problem[];
}

function ingressOf(
  address: IpAddress,
  { ports }: ServiceRecord,
  { spec, problems }: IngressContext,
): V1LoadBalancerIngress {
  return {
    ip: address,
    ipMode: spec.path === 'transparent' ? 'VIP' : 'Proxy',
    ports: ports.map(({ port, protocol }) => {
      const error = portError({ address, port, protocol }, problems);
      return { port, protocol, ...(error === undefined ? {} : { error }) };
    }),
  };
}

function portError(
  place: { readonly address: IpAddress; readonly port: Port; readonly protocol: Protocol },
  problems: readonly Problem[],
): string | undefined {
  const problem = problems.filter(isPortError).find((one) => {
    const of = problemPort(one);
    const isHere = one.kind !== 'portConflict' || one.address === place.address;
    return of?.port === place.port && of.protocol === place.protocol && isHere;
  });
  return problem === undefined ? undefined : `${errorPrefix}${capitalised(problem.kind)}`;
}

function capitalised(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}
