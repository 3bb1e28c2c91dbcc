import type { ConformanceCase } from '../../src/model/case.ts';

/** Scenario files that touch what smoke cases do not, each by itself. */
const quick: ReadonlySet<string> = new Set([
  'both-policies-local',
  'cluster-ip-moves',
  'duplicate-address',
  'etp-leftover',
  'etp-toggle',
  'health-check-node-port',
  'masquerade-all',
  'no-pod-detector',
  'node-port-addresses-selected',
  'node-port-loopback-off',
  'not-proxied',
  'odd-slices',
  'one-port-three-protocols',
  'pod-bridge-interface',
  'pod-interface-prefix',
  'port-per-slice',
  'restart',
  'service-type-tour',
  'session-affinity-local',
  'shared-external-ip',
  'source-ranges-change',
  'source-ranges-node-loopback',
  'source-ranges-other-family',
  'topology-node',
  'topology-terminating',
  'topology-zone',
  'udp-policies',
  'unallocated-cluster-ip',
  'unknown-port',
  'vip-is-node-address',
]);

/** And more of them, which need starts of the agent or both families. */
const alsoQuick: ReadonlySet<string> = new Set([
  'session-affinity-toggle',
  'external-ip-is-cluster-ip',
  'external-ip-is-load-balancer-ip',
  'node-port-addresses',
  'node-port-primary',
  'source-ranges-other-family',
  'topology-missing-hint',
]);

type IsIn = (one: ConformanceCase) => boolean;

const isSlow: IsIn = ({ tags }) => tags.includes('slow');

/**
 * Cases that catch most in the least time come first; the same for every agent. Slow cases, which are the rolling updates, are in none:
 * they look at losses in the milliseconds of a change, and one takes as long as all others of an early stage.
 */
const stages: readonly IsIn[] = [
  ({ tags }) => tags.includes('smoke'),
  ({ id }) => quick.has(fileOf(id) ?? ''),
  ({ id }) => alsoQuick.has(fileOf(id) ?? ''),
  ({ id, tags }) => tags.includes('sequence') && !id.endsWith('/ipv6'),
  () => true,
];

/** The scenario file of a case whose first family is IPv4. */
function fileOf(id: string): string | undefined {
  return /^scenario\/(.+)\/(?:dual-)?ipv4$/.exec(id)?.[1];
}

/** How many there are. */
export const stageCount: number = stages.length;

/** The cases of a stage: those of `all` that no earlier one has. */
export function casesOfStage(stage: number, all: readonly ConformanceCase[]): readonly ConformanceCase[] {
  const earlier = stages.slice(0, stage);
  return all.filter((one) => !isSlow(one) && stages[stage]?.(one) === true && !earlier.some((isIn) => isIn(one)));
}
