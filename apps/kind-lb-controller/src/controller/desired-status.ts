import type { V1Condition, V1LoadBalancerIngress } from '@kubernetes/client-node';
import { type IpAddress, isEqual, type Port, type Protocol, tryParseIp } from '@switchyard/core';
import { isOurs, type LoadBalancerService } from '../cluster/cluster-objects.ts';
import { type AddressSource, isFromSource } from '../plan/ip-pool.ts';
import { type Problem, problemText, type ServicePlan } from '../plan/plan.ts';

/** The Service condition that tells about ports, as Kubernetes names it (KEP-1435). */
export const portsConditionType = 'LoadBalancerPortsError';

/** What `status` is to say. */
export interface DesiredStatus {
  readonly ingress: readonly V1LoadBalancerIngress[];
  /** Undefined: there is nothing wrong, and no such condition. */
  readonly condition: { readonly reason: string; readonly message: string } | undefined;
}

/** Prefix of our error names in `ingress[].ports[].error`; names without one are Kubernetes' own. */
const errorPrefix = 'switchyard.dev/';

/** The status that a plan asks for, once HAProxy has taken its configuration. */
export function desiredStatus({ service, served, problems, grant }: ServicePlan): DesiredStatus {
  const addresses = grant.filter((address) => served?.binds.some((bind) => bind.address === address) ?? false);
  return {
    ingress: addresses.map((address) => ({
      ip: address,
      ipMode: 'Proxy',
      ports: service.record.ports.map((port) => portStatus(address, port, problems)),
    })),
    condition: problems.length === 0 ? undefined : conditionOf(problems),
  };
}

/**
 * Whether a Service that is not ours still shows what we wrote when it was: then it must be cleared. Only entries
 * with `ipMode: Proxy` and one of our addresses are ours.
 */
export function hasLeftovers(service: LoadBalancerService, source: AddressSource): boolean {
  if (isOurs(service) || service.loadBalancerClass !== undefined) return false;
  return (
    service.ingress.some(({ ip: text = '', ipMode }) => {
      const ip = tryParseIp(text);
      return ipMode === 'Proxy' && ip !== undefined && isFromSource(source, ip);
    }) || service.conditions.some(({ type }) => type === portsConditionType)
  );
}

/**
 * The merge patch for `/status`, or undefined if it already says so. It carries the resourceVersion, because lists are
 * replaced as a whole: a write based on an old list must fail. An empty ingress is sent as null; `{}` would change nothing.
 */
export function statusPatch(
  service: LoadBalancerService,
  desired: DesiredStatus,
  now: string,
): Readonly<Record<string, unknown>> | undefined {
  const conditions = conditionsOf(service, desired, now);
  const isIngressEqual = isEqual(service.ingress, desired.ingress);
  const areConditionsEqual = isEqual(service.conditions, conditions);
  if (isIngressEqual && areConditionsEqual) return undefined;
  return {
    metadata: { resourceVersion: service.resourceVersion },
    status: {
      ...(isIngressEqual ? {} : { loadBalancer: { ingress: orNull(desired.ingress) } }),
      ...(areConditionsEqual ? {} : { conditions: orNull(conditions) }),
    },
  };
}

function conditionsOf(
  { conditions, generation }: LoadBalancerService,
  { condition }: DesiredStatus,
  now: string,
): readonly V1Condition[] {
  const before = conditions.find(({ type }) => type === portsConditionType);
  const others = conditions.filter(({ type }) => type !== portsConditionType);
  if (condition === undefined) return before === undefined ? conditions : others;
  if (before?.status === 'True' && before.reason === condition.reason && before.message === condition.message) {
    return conditions;
  }
  const written = {
    type: portsConditionType,
    status: 'True',
    reason: condition.reason,
    message: condition.message,
    // On the wire it is text; the model's type says Date.
    lastTransitionTime: (before?.status === 'True' ? before.lastTransitionTime : now) as Date,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
  return [...others, written];
}

function conditionOf(problems: readonly Problem[]): { readonly reason: string; readonly message: string } {
  const kinds = new Set(problems.map(({ kind }) => kind));
  const [first] = kinds;
  return {
    reason: kinds.size === 1 && first !== undefined ? capitalised(first) : 'SeveralProblems',
    message: problems.map(problemText).join('; '),
  };
}

function portStatus(
  address: IpAddress,
  { port, protocol }: { readonly port: Port; readonly protocol: Protocol },
  problems: readonly Problem[],
): { readonly port: number; readonly protocol: string; readonly error?: string } {
  const problem = problems.find(
    (one) =>
      'port' in one &&
      one.port === port &&
      one.protocol === protocol &&
      (one.kind !== 'portConflict' || one.address === address),
  );
  return { port, protocol, ...(problem === undefined ? {} : { error: `${errorPrefix}${capitalised(problem.kind)}` }) };
}

function capitalised(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

function orNull<T>(list: readonly T[]): readonly T[] | null {
  return list.length === 0 ? null : list;
}
