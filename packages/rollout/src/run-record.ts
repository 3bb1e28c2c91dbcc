import type { EndpointSliceRecord, IpFamily, Millis, ServiceRecord } from '@switchyard/core';
import type { LoadResult } from '@switchyard/lab';
import type { CheckTiming, LossCause } from '@switchyard/loss';
import type { DataplaneName } from '@switchyard/scenarios';

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

/** Packets of the Service that the kernel of a node dropped, and why, as its agent says it. */
export interface PacketLoss {
  /** Time of the reading, up to half a second after the packets. */
  readonly at: Millis;
  readonly node: string;
  /** Code of the cause, such as `noLocalEndpoint`. */
  readonly cause: string;
  readonly why: string;
  /** Packets. */
  readonly count: number;
}

/** Losses that the agents watched, in each node's order; or why they could not. */
export type WatchedLosses =
  | { readonly status: 'watched'; readonly losses: readonly PacketLoss[] }
  | { readonly status: 'unwatched'; readonly why: string };

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
  /** Undefined: nothing was to watch packets. */
  readonly packetLosses: WatchedLosses | undefined;
}

/** The event times that the model uses, of the first move, in seconds after the old pod's deletionTimestamp; undefined if it never happened. */
export interface KeyTimes {
  /** The old node's agent had applied the table in which the old pod is terminating. */
  readonly oldNodeSynced: number | undefined;
  /** The old node's health check first answered 503. */
  readonly oldNodeUnhealthy: number | undefined;
  readonly newUp: number | undefined;
  readonly oldDown: number | undefined;
  readonly appEnded: number | undefined;
}

/** Summary of a run. */
export interface RunSummary {
  readonly terminatingFallback: boolean;
  readonly requests: number;
  readonly answered: number;
  readonly lost: number;
  /** First to last lost request, by the time they were sent, in seconds after the deletionTimestamp. */
  readonly lossWindow: { readonly from: number; readonly to: number } | undefined;
  /** Length of the loss window; 0 when nothing was lost. */
  readonly lossWindowSeconds: number;
  /** Loss that the model predicts from the observed event times: the middle of `predicted`. */
  readonly predictedLost: number;
  /** Bounds of the prediction for unknown applies of the proxies; both are equal if the applies were observed. */
  readonly predicted: { readonly least: number; readonly most: number };
  /** Lost requests by cause; causes without one are left out. */
  readonly lostByCause: Readonly<Partial<Record<LossCause, number>>>;
  /** Every lost request with its cause, in order of sending. */
  readonly losses: readonly Loss[];
  readonly firstLoss: FirstLoss | undefined;
  /** Undefined: nothing was to watch packets. */
  readonly comparison: LossComparison | undefined;
  readonly keyTimes: KeyTimes;
}

/** One lost request. */
export interface Loss {
  readonly sequence: number;
  /** Time of sending, in seconds after the deletionTimestamp. */
  readonly at: number;
  readonly outcome: string;
  readonly cause: LossCause;
  /** The agents' word for it; undefined if no packet reached a node, or nothing watched. */
  readonly seen: PacketLoss | undefined;
}

/** The model's causes, which come from times of events, against those that the agents see in the kernel. */
export type LossComparison =
  | { readonly status: 'unwatched'; readonly why: string }
  | {
      readonly status: 'watched';
      /** Lost requests of which a packet reached a node, by the model. */
      readonly atNodes: number;
      /** Those for which an agent saw lost packets of the same cause at that time. */
      readonly seen: number;
    };

/** Explanation of the first loss. */
export interface FirstLoss extends Loss {
  /** The oracle's explanation of what the node did with it, in order. Empty if no packet reached a node. */
  readonly explanation: readonly string[];
}
