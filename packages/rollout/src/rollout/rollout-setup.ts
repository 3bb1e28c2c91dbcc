import type { LabProcess } from '@switchyard/lab';
import type { RunSettings, SyncMoment } from '../run-record.ts';
import type { LoadBalancer } from '../experiment/load-balancer.ts';
import type { Experiment } from '../experiment/experiment.ts';

/** The Service proxies of all nodes. */
export interface Proxies {
  /** Programs whose end ends the experiment; empty: another part supervises them. */
  readonly programs: readonly LabProcess[];
  /** Every apply so far, in order of time; undefined if the proxies do not report them. */
  syncs(): readonly SyncMoment[] | undefined;
}

/** Everything that takes part in a rollout. */
export interface RolloutSetup {
  readonly experiment: Experiment;
  readonly proxies: Proxies;
  /** Undefined: no requests go through one. */
  readonly loadBalancer: LoadBalancer | undefined;
  readonly settings: RunSettings;
}

/** The programs whose end is the experiment's end. */
export function programsOf({ proxies, loadBalancer }: RolloutSetup): readonly LabProcess[] {
  return [...proxies.programs, ...(loadBalancer === undefined ? [] : [loadBalancer.program])];
}
