import { type ApplyOutcome, outcomeOf, type ServiceCounters } from '@switchyard/core/engine';
import type { ServicePortKey } from '@switchyard/core';

export interface MapsOutcome {
  readonly writes: number;
  /** Services that do not fit, or cannot be rendered. Their former entries stay. */
  readonly failed: ReadonlyMap<ServicePortKey, Error>;
  /** Error of a stale object that could not be removed; absent without any. */
  readonly unremoved?: Error;
}

/** Merges the outcome of maps with those of rules, in the order of writing; undefined ones were not needed. A service that failed in one failed. */
export function mergeOutcomes(maps: MapsOutcome, rules: readonly (ApplyOutcome | undefined)[]): ApplyOutcome {
  const failed = new Map(maps.failed);
  let { writes, unremoved } = maps;
  for (const one of rules) {
    if (one === undefined) continue;
    if (one.status === 'failed') return one;
    writes += one.writes;
    unremoved ??= one.unremoved;
    if (one.status === 'partial') for (const [key, error] of one.failed) failed.set(key, error);
  }
  return outcomeOf({ writes, failed, refused: 0, unremoved: unremoved === undefined ? [] : [unremoved] });
}

/** Sums of the counters of programs and rules. Each packet is counted once, where it is carried. */
export function sumCounters(
  programs: ReadonlyMap<ServicePortKey, ServiceCounters>,
  rules: ReadonlyMap<ServicePortKey, ServiceCounters>,
): ReadonlyMap<ServicePortKey, ServiceCounters> {
  const sums = new Map(programs);
  for (const [key, counters] of rules) {
    const other = sums.get(key);
    sums.set(key, other === undefined ? counters : add(counters, other));
  }
  return sums;
}

function add(a: ServiceCounters, b: ServiceCounters): ServiceCounters {
  return {
    connections: a.connections + b.connections,
    drops: {
      noLocalEndpoint: a.drops.noLocalEndpoint + b.drops.noLocalEndpoint,
      noEndpoints: a.drops.noEndpoints + b.drops.noEndpoints,
      sourceRange: a.drops.sourceRange + b.drops.sourceRange,
    },
  };
}
