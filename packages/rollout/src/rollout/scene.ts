import type { LabProcess } from '@switchyard/lab';
import type { RunSettings, SyncMoment } from '../run-record.ts';
import type { LoadBalancer } from '../stage/load-balancer.ts';
import type { Stage } from '../stage/stage.ts';

/** The Service proxies of all nodes. */
export interface Proxies {
  /** Whose end is the experiment's end; empty: somebody else looks after them. */
  readonly programs: readonly LabProcess[];
  /** Every apply so far, in order of time; undefined where nobody can tell. */
  syncs(): readonly SyncMoment[] | undefined;
}

/** Everything that plays while an app is rolled. */
export interface Scene {
  readonly stage: Stage;
  readonly proxies: Proxies;
  /** Undefined: nothing is sent through one. */
  readonly loadBalancer: LoadBalancer | undefined;
  readonly settings: RunSettings;
}

/** The programs whose end is the experiment's end. */
export function programsOf({ proxies, loadBalancer }: Scene): readonly LabProcess[] {
  return [...proxies.programs, ...(loadBalancer === undefined ? [] : [loadBalancer.program])];
}
