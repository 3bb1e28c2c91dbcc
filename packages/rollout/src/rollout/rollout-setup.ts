import type { Millis } from '@switchyard/core';
import type { LabProcess } from '@switchyard/lab';
import type { LossWatch } from '../experiment/loss-watch.ts';
import type { LoadBalancer } from '../experiment/load-balancer.ts';
import type { RolloutSite } from './rollout-site.ts';
import type { RunSettings, SyncMoment, RequestRecord } from '../run-record.ts';

/** The Service proxies of all nodes. */
export interface Proxies {
  /** Programs whose end ends the experiment; empty: another part supervises them. */
  readonly programs: readonly LabProcess[];
  /** Every apply so far, in order of time; undefined if the proxies do not report them. */
  syncs(): readonly SyncMoment[] | undefined;
}

/** Everything that takes part in a rollout. */
export interface RolloutSetup {
  readonly experiment: RolloutSite;
  readonly proxies: Proxies;
  /** Undefined: no requests go through one. */
  readonly loadBalancer: LoadBalancer | undefined;
  readonly settings: RunSettings;
  /** Default: no packets are watched. */
  readonly lossWatch?: LossWatch;
}

/** The programs whose end is the experiment's end. */
export function programsOf({ proxies, loadBalancer }: RolloutSetup): readonly LabProcess[] {
  return [...proxies.programs, ...(loadBalancer?.programs ?? [])];
}

/** Receives progress while a rollout runs. */
export interface RolloutProgress {
  step(text: string): void;
  /** The load has started; `oldPod` answers now. */
  loadStarted(at: Millis, oldPod: string): void;
  request(request: RequestRecord): void;
  loadEnded(): void;
}

/** Ignores all progress. */
export const silentProgress: RolloutProgress = {
  step: () => undefined,
  loadStarted: () => undefined,
  request: () => undefined,
  loadEnded: () => undefined,
};
