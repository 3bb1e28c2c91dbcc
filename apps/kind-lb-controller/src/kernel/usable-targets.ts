import { type IpFamily, ipFamilyOf } from '@switchyard/core';
import type { LoadBalancerSpec, PortSpec, Target } from '../spec/load-balancer-spec.ts';
import type { TargetHealth } from '../spec/target-health.ts';

/** A port's targets of one IP family by what they may get. */
export interface UsableTargets {
  /** New connections go to these. Empty: to none. */
  readonly forNew: readonly Target[];
  /** UP, serving while they drain or not: what has no connections, such as UDP, may go on to these. Contains `forNew`. */
  readonly forOld: readonly Target[];
  /** All there are: connections end by themselves, also where a health check fails because the application is draining. */
  readonly present: readonly Target[];
}

/** New connections avoid draining targets, unless no other one is UP. Order is kept. */
export function usableTargets(
  { spec, port, ipFamily }: { readonly spec: LoadBalancerSpec; readonly port: PortSpec; readonly ipFamily: IpFamily },
  health: TargetHealth,
): UsableTargets {
  const present = port.targets.filter(({ address }) => ipFamilyOf(address) === ipFamily);
  const forOld = present.filter((target) => target.draining !== 'empty' && health.isUp(spec.id, target));
  const staying = forOld.filter(({ draining }) => draining === 'no');
  return { forNew: staying.length > 0 ? staying : forOld, forOld, present };
}
