import type { DataplaneName } from '@switchyard/scenarios';
import type { CheckTiming } from '@switchyard/loss';
import type { EndpointSliceRecord, IpFamily, Millis, ServiceRecord } from '@switchyard/core';
import type { LoadResult } from '@switchyard/lab';

/** Health checks of the load balancer. Durations are real ones, already scaled. */
export interface HealthCheck extends CheckTiming {
  /** Name of the profile that the timing was taken from; flags may have changed it. */
  readonly profile: string;
}

/** Settings of one run. Durations are real ones, already scaled. */
export interface RunSettings {
  readonly terminatingFallback: boolean;
  /** The node agents' --proxy-mode. */
  readonly proxyMode: DataplaneName;
  /** Requests per second of the open loop. */
  readonly rate: number;
  /** Timeout of a request. */
  readonly requestTimeout: Millis;
  readonly healthCheck: HealthCheck;
  /** Place of the load balancer: one HAProxy process in the lab's load-balancer host, or a container of a Docker Engine there. */
  readonly runtime: 'process' | 'docker';
  /** Whether the load balancer takes a node out as soon as an EndpointSlice says so, before any check fails. */
  readonly fastDrain: boolean;
  /** Time that the app serves after SIGTERM. */
  readonly delayShutdown: Millis;
  /** Factor all durations were multiplied by; 1 is the article's experiment. */
  readonly timeScale: number;
}

/**
 * One request of the load, in wall-clock milliseconds. Anything but `answered` is lost. `unsent`: it was due, and never sent; its
 * other times are then that one.
 */
export type RequestRecord = Omit<LoadResult, 'httpStatus' | 'outcome'> & {
  readonly outcome: LoadResult['outcome'] | 'unsent';
};

/** A step in a pod's life, seen from the kubelet's side. */
export interface PodMoment {
  readonly at: Millis;
  readonly pod: string;
  readonly node: string;
  readonly phase: 'created' | 'started' | 'ready' | 'deleting' | 'sigterm' | 'ended' | 'gone';
}

/** State of one node's endpoint in the EndpointSlices from `at` on. */
export interface EndpointMoment {
  readonly at: Millis;
  readonly node: string;
  readonly state: 'none' | 'notReady' | 'ready' | 'servingTerminating' | 'terminating';
}

/** One apply of one node's proxy. `at` is when it was finished. */
export interface SyncMoment {
  readonly at: Millis;
  readonly node: string;
  readonly writes: number;
  readonly duration: Millis;
}

/** The answer of a node's healthCheckNodePort from `at` on; `status` 0 means no answer. */
export interface HealthMoment {
  readonly at: Millis;
  readonly node: string;
  readonly status: number;
}

/** HAProxy's state of a node from `at` on. */
export interface LoadBalancerMoment {
  readonly at: Millis;
  readonly node: string;
  readonly isUp: boolean;
  readonly reason: string;
}

/** Cluster state as a watch delivered it, kept so that `explain` can be asked about any moment. */
export interface StateMoment {
  readonly at: Millis;
  readonly service: ServiceRecord | undefined;
  readonly slices: readonly EndpointSliceRecord[];
}

/** A pod and where it ran. */
export interface PodPlace {
  readonly name: string;
  readonly node: string;
}

/** One pod made way for another. */
export interface Move {
  readonly oldPod: PodPlace;
  readonly newPod: PodPlace;
  /** Time at which the old pod's deletionTimestamp was seen. */
  readonly deletedAt: Millis;
}

/** Path of requests to the app. */
export type LoadPath = {
  /** Name for reports: `load balancer`, `outside to node1`. */
  readonly name: string;
  readonly ipFamily: IpFamily;
} & (
  | { readonly kind: 'loadBalancer' }
  /** Straight to one node's dataplane. `endpoints`: which of them the traffic policy lets it use. */
  | {
      readonly kind: 'node';
      readonly node: string;
      readonly endpoints: 'own' | 'all';
      readonly frontend: 'nodePort' | 'clusterIP';
    }
);

/** Everything observed in one rolling update by one path, on one clock, each list in order of time. */
export interface RunRecord {
  readonly settings: RunSettings;
  readonly path: LoadPath;
  readonly startedAt: Millis;
  readonly endedAt: Millis;
  readonly nodes: readonly string[];
  /** Moves in order of time. The first one's `deletedAt` is zero of the timeline. */
  readonly moves: readonly [Move, ...Move[]];
  readonly requests: readonly RequestRecord[];
  readonly pods: readonly PodMoment[];
  readonly endpoints: readonly EndpointMoment[];
  /** Undefined: the proxies do not report their applies. */
  readonly syncs: readonly SyncMoment[] | undefined;
  readonly health: readonly HealthMoment[];
  readonly loadBalancer: readonly LoadBalancerMoment[];
  readonly states: readonly StateMoment[];
}
