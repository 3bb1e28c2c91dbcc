import type { IpFamily } from '@switchyard/core';
import type {
  App,
  AppOptions,
  ExplainAt,
  LoadTarget,
  PodPlace,
  RequestSender,
  RolloutSetup,
} from '@switchyard/rollout';
import type { DataplaneName } from '@switchyard/scenarios';

/** One kind of rolling update. */
export interface RolloutKind {
  readonly workload: 'deployment' | 'daemonset';
  readonly policy: 'Cluster' | 'Local';
  readonly title: string;
  readonly why: string;
  readonly strategy: Pick<AppOptions, 'maxSurge' | 'maxUnavailable'>;
}

/** A rolling update in one family. */
export interface RolloutCase {
  readonly kind: RolloutKind;
  readonly family: IpFamily;
  readonly dataplane: DataplaneName;
}

/** How fast pods end and connections are used, in milliseconds. */
export interface RolloutPace {
  /** Time between the moment a pod is no longer needed and its release, for packets in flight and slow proxies. */
  readonly margin: number;
  /** Longest wait for the load balancer once other pods can serve: one that never leaves a pod must show as losses. */
  readonly longest: number;
  /** Between two lines of an open connection. */
  readonly lineInterval: number;
}

/** Target of connections that stay open: an echo server's port by one path. */
export interface HoldTarget {
  readonly path: string;
  readonly from: RequestSender;
  readonly address: string;
  readonly port: number;
}

/** A deployed app and the ways to it. Disposing removes the app and stops what was started for it. */
export interface PreparedRollout extends AsyncDisposable {
  readonly setup: RolloutSetup;
  readonly app: App;
  readonly targets: readonly LoadTarget[];
  readonly holdTargets: readonly HoldTarget[];
  readonly explainAt: ExplainAt;
  readonly pace: RolloutPace;
  /** Ends a pod that is being deleted, before its grace period is over. */
  readonly endPod: (pod: PodPlace, signal: AbortSignal) => Promise<void>;
}
