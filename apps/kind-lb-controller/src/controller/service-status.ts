import type { V1Condition, V1LoadBalancerIngress } from '@kubernetes/client-node';
import { type IpAddress, isEqual } from '@switchyard/core';
import { type LoadBalancerService, ourLoadBalancerClass } from '../cluster/cluster-objects.ts';

/** The Service condition for port errors, as Kubernetes names it (KEP-1435). */
export const portsConditionType = 'LoadBalancerPortsError';
/** The Service condition that shows whether the load balancer runs as specified, and with which health checks. */
export const readyConditionType = 'lb.switchyard.dev/Ready';

const ourConditionTypes: ReadonlySet<string> = new Set([portsConditionType, readyConditionType]);

/** A condition that this controller writes. */
export interface DesiredCondition {
  readonly type: typeof portsConditionType | typeof readyConditionType;
  readonly status: 'True' | 'False';
  /** CamelCase and stable. */
  readonly reason: string;
  readonly message: string;
}

/** Wanted status. */
export interface DesiredStatus {
  /** The complete list; empty without a load balancer. Undefined: unchanged. */
  readonly ingress: readonly V1LoadBalancerIngress[] | undefined;
  /** At most one per own type; own types that are missing here are removed. */
  readonly conditions: readonly DesiredCondition[];
}

/** Whether this controller has written a status of this Service and not cleared it. */
export function hasOurConditions({ conditions }: LoadBalancerService): boolean {
  return conditions.some(({ type }) => type === readyConditionType);
}

/**
 * The status of a Service after its load balancer was removed. Where another implementation is responsible now, what may
 * be its own stays: only `addresses`, which this controller had granted, are removed.
 */
export function clearedStatus(service: LoadBalancerService, addresses: readonly IpAddress[]): DesiredStatus {
  const { loadBalancerClass: name } = service;
  const isOthers = name !== undefined && name !== ourLoadBalancerClass;
  const ours: readonly string[] = addresses;
  const ingress = isOthers ? service.ingress.filter(({ ip }) => ip === undefined || !ours.includes(ip)) : [];
  return { ingress, conditions: [] };
}

/**
 * Merge patch for `status`; undefined when nothing differs. Lists are replaced as a whole. An empty
 * ingress is sent as null; `{}` would change nothing.
 */
export function statusPatch(
  service: LoadBalancerService,
  desired: DesiredStatus,
  now: string,
): Readonly<Record<string, unknown>> | undefined {
  const conditions = conditionsOf(service, desired, now);
  const { ingress = service.ingress } = desired;
  const isIngressEqual = isEqual(service.ingress, ingress);
  const areConditionsEqual = isEqual(service.conditions, conditions);
  if (isIngressEqual && areConditionsEqual) return undefined;
  return {
    ...(isIngressEqual ? {} : { loadBalancer: { ingress: orNull(ingress) } }),
    ...(areConditionsEqual ? {} : { conditions: orNull(conditions) }),
  };
}

/** Foreign conditions keep their place, own ones their order; new ones come last. */
function conditionsOf(
  { conditions, generation }: LoadBalancerService,
  desired: DesiredStatus,
  now: string,
): readonly V1Condition[] {
  const wanted = new Map<string, DesiredCondition>(desired.conditions.map((one) => [one.type, one]));
  const kept = conditions.flatMap((before): readonly V1Condition[] => {
    if (!ourConditionTypes.has(before.type)) return [before];
    const next = wanted.get(before.type);
    wanted.delete(before.type);
    return next === undefined ? [] : [conditionOf(next, { before, generation, now })];
  });
  return [...kept, ...[...wanted.values()].map((next) => conditionOf(next, { before: undefined, generation, now }))];
}

interface ConditionContext {
  readonly before: V1Condition | undefined;
  readonly generation: number | undefined;
  readonly now: string;
}

function conditionOf(next: DesiredCondition, { before, generation, now }: ConditionContext): V1Condition {
  const isSame = before?.status === next.status && before.reason === next.reason && before.message === next.message;
  // The generation alone is not worth a write: it would follow every change of the Service.
  if (before !== undefined && isSame) return before;
  return {
    type: next.type,
    status: next.status,
    reason: next.reason,
    message: next.message,
    // On the wire it is text; the model's type says Date.
    lastTransitionTime: (before?.status === next.status ? before.lastTransitionTime : now) as Date,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
}

function orNull<T>(list: readonly T[]): readonly T[] | null {
  return list.length === 0 ? null : list;
}
