import { ipFamilyOf } from '@switchyard/core';
import type { TargetChange } from '../runtime/runtime.ts';
import { isProxied } from '../spec/kernel-ports.ts';
import { type LoadBalancerSpec, loadBalancerKey } from '../spec/load-balancer-spec.ts';
import type { TargetHealth } from '../spec/target-health.ts';
import { parseServerState, type ServerStateChange } from './haproxy-log.ts';
import { parseBackendName, safeName } from './haproxy-names.ts';
import { backendsOf, type HaproxyServer, isSameCheck } from './haproxy-servers.ts';
import { upServers } from './server-state.ts';

/** Health of the specs' targets, from HAProxy's answer to `show servers state`. A second backend counts where the first has no server UP. */
export function targetHealth(specs: readonly LoadBalancerSpec[], serverStates: string): TargetHealth {
  const up = upServers(serverStates);
  const checksById = new Map(
    specs.map((spec) => {
      const backends = backendsOf(spec);
      const upIn = (name: string): readonly HaproxyServer[] =>
        backends
          .filter((one) => one.name === name)
          .flatMap(({ servers }) => servers.filter((one) => one.draining !== 'empty' && up.has(`${name}/${one.name}`)));
      const usable = backends
        .filter(({ isLast }) => !isLast)
        .flatMap(({ name }) => {
          const first = upIn(name);
          return first.length > 0 ? first : upIn(`${name}:last`);
        });
      return [loadBalancerKey(spec.id), usable.map(({ check }) => check)] as const;
    }),
  );
  return {
    isUp: (id, { check }) => checksById.get(loadBalancerKey(id))?.some((one) => isSameCheck(one, check)) ?? false,
  };
}

/** Effect of a server's change on load balancers and kernel rules. */
export interface HealthUpdate {
  /** One per Service port that uses the target. */
  readonly changes: readonly TargetChange[];
  /** Whether kernel rules depend on it. */
  readonly concernsKernel: boolean;
}

/**
 * Maps a server's change to these load balancers. Empty for a server of none of them: a backend of the idle
 * configuration, or a target that was just removed. `now` is the wall clock.
 */
export function healthUpdate(change: ServerStateChange, specs: readonly LoadBalancerSpec[], now: number): HealthUpdate {
  const owner = parseBackendName(change.backend);
  const spec =
    owner === undefined ? undefined : specs.find(({ id }) => loadBalancerKey(id) === loadBalancerKey(owner.id));
  if (owner === undefined || spec === undefined) return { changes: [], concernsKernel: false };
  const { use, ipFamily, isLast } = owner;
  const concernsKernel = use.kind === 'check';
  const server = backendsOf(spec)
    .find(({ name }) => name === change.backend)
    ?.servers.find(({ name }) => name === change.server);
  if (server === undefined || isLast) return { changes: [], concernsKernel };
  const { isUp, reason } = change;
  const changes = spec.ports
    .filter((port) => isProxied(spec, port) === (use.kind === 'port'))
    .filter(({ port }) => use.kind === 'check' || use.port === port)
    .flatMap(({ port, targets }) =>
      targets
        .filter(({ address, check }) => ipFamilyOf(address) === ipFamily && isSameCheck(check, server.check))
        .filter(({ name }) => `${server.name}:`.startsWith(`${safeName(name)}:`))
        .map(({ name }) => ({ id: spec.id, port, ipFamily, target: name, isUp, time: now, reason })),
    );
  return { changes, concernsKernel };
}

/** The same for a line of HAProxy's log, for example of its container; undefined for a line about no server. */
export function healthUpdateInLog(
  line: string,
  specs: readonly LoadBalancerSpec[],
  now: number,
): HealthUpdate | undefined {
  const change = parseServerState(line);
  return change === undefined ? undefined : healthUpdate(change, specs, now);
}
