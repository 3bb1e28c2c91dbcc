import { InvariantError, type IpAddress, type IpFamily, ipFamilyOf, type Port } from '@switchyard/core';
import { isProxied } from '../spec/kernel-ports.ts';
import type { Draining, LoadBalancerSpec, Target, TargetCheck } from '../spec/load-balancer-spec.ts';
import { backendName, type BackendUse, safeName } from './haproxy-names.ts';

/** A server line's identity: as long as none of it changes, its health may be carried over a reload. */
export interface HaproxyServer {
  readonly backend: string;
  readonly name: string;
  /** Where traffic goes; in a backend that only checks, the same as the check. */
  readonly address: IpAddress;
  readonly port: Port;
  readonly check: TargetCheck;
  /** Whether HAProxy checks the server. An unchecked server is always UP. */
  readonly isChecked: boolean;
  readonly draining: Draining;
  /** Whether it gets new connections only while no other server is UP. */
  readonly isBackup: boolean;
  /** Whether its weight comes from health answers. */
  readonly isWeighted: boolean;
  /** Checks that HAProxy may count: at most rise + fall - 1. */
  readonly maxHealth: number;
}

/** One backend with its servers, in the order of the spec. */
export interface HaproxyBackend {
  readonly name: string;
  readonly use: BackendUse;
  readonly ipFamily: IpFamily;
  readonly isLast: boolean;
  readonly spec: LoadBalancerSpec;
  /** Path of all its checks. */
  readonly checkPath: string;
  readonly servers: readonly HaproxyServer[];
}

/**
 * All backends of a load balancer: for each TCP port in path `proxy` one per family of its addresses, and for everything
 * else one per family that only checks, with one server per distinct target name and check. Each twice with `whenNoneUp: lastUp` or `all`.
 */
export function backendsOf(spec: LoadBalancerSpec): readonly HaproxyBackend[] {
  const kernelPorts = spec.ports.filter((port) => !isProxied(spec, port));
  const uses = [
    ...spec.ports
      .filter((port) => isProxied(spec, port))
      .map(({ port, addresses, targets }) => ({ use: { kind: 'port', port } as const, addresses, targets })),
    {
      use: { kind: 'check' } as const,
      addresses: kernelPorts.flatMap(({ addresses }) => addresses),
      targets: distinctChecks(kernelPorts.flatMap(({ targets }) => targets)),
    },
  ];
  return uses.flatMap(({ use, addresses, targets }) =>
    [...new Set(addresses.map(ipFamilyOf))].sort().flatMap((ipFamily) => {
      const own = targets.filter(({ address }) => ipFamilyOf(address) === ipFamily);
      const variants = spec.profile.whenNoneUp === 'close' ? [false] : [false, true];
      return variants.map((isLast) => backendOf({ spec, use, ipFamily, isLast }, own));
    }),
  );
}

/** Failed checks after which a server leaves the backend: in a second one, so late that it was not UP for `lastUpFor`. */
export function fallOf({ profile }: LoadBalancerSpec, isLast: boolean): number {
  return isLast ? profile.fall + Math.ceil(profile.lastUpFor / profile.interval) : profile.fall;
}

/** Good checks after which it is back; for a last resort one is enough. */
export function riseOf({ profile }: LoadBalancerSpec, isLast: boolean): number {
  return isLast ? 1 : profile.rise;
}

function backendOf(
  owner: {
    readonly spec: LoadBalancerSpec;
    readonly use: BackendUse;
    readonly ipFamily: IpFamily;
    readonly isLast: boolean;
  },
  targets: readonly Target[],
): HaproxyBackend {
  const { spec, use, isLast } = owner;
  const name = backendName({ id: spec.id, ...owner });
  const maxHealth = riseOf(spec, isLast) + fallOf(spec, isLast) - 1;
  const servers = targets.map((target): HaproxyServer => {
    const { address, port } = use.kind === 'check' ? target.check : target;
    const { check } = target;
    const isServing = target.draining === 'serving';
    // Among those that were UP a moment ago, the one that drains is sure to serve.
    const isBackup = isServing && !(isLast && spec.profile.whenNoneUp === 'lastUp');
    const isChecked = !isLast || (spec.profile.whenNoneUp !== 'all' && !isServing);
    return {
      backend: name,
      name: safeName(target.name),
      address,
      port,
      check,
      isChecked,
      draining: target.draining,
      isBackup,
      isWeighted: spec.isWeighted,
      maxHealth,
    };
  });
  return { ...owner, name, checkPath: commonPath(name, targets), servers };
}

/** Targets that are checked alike under the same name are one; another check under a name that is taken gets a number. */
function distinctChecks(targets: readonly Target[]): readonly Target[] {
  const byName = Map.groupBy(targets, ({ name, address }) => `${name} ${ipFamilyOf(address)}`);
  return [...byName.values()].flatMap((namesakes) => {
    const distinct = namesakes.filter(
      ({ check }, index) => namesakes.findIndex((one) => isSameCheck(one.check, check)) === index,
    );
    return distinct.map((target, index) => ({
      ...target,
      name: index === 0 ? target.name : `${target.name}:${index + 1}`,
      draining: leastDraining(namesakes.filter(({ check }) => isSameCheck(check, target.check))),
    }));
  });
}

/** Ports may have different endpoints: the server of a check stays in use for as long as one of them needs it. */
function leastDraining(targets: readonly Target[]): Draining {
  const found = new Set(targets.map(({ draining }) => draining));
  return (['no', 'serving'] as const).find((one) => found.has(one)) ?? 'empty';
}

/** Whether one answer is valid for both checks. */
export function isSameCheck(a: TargetCheck, b: TargetCheck): boolean {
  return a.address === b.address && a.port === b.port && a.path === b.path;
}

function commonPath(backend: string, targets: readonly Target[]): string {
  const [path = '/healthz', ...others] = new Set(targets.map(({ check }) => check.path));
  if (others.length > 0) throw new InvariantError(`the targets of ${backend} are checked at different paths`);
  return path;
}
