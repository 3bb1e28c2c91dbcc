import type { Millis } from '@switchyard/core';

/** Condition of an endpoint: in its EndpointSlice, or as a node's kernel has it. */
export type EndpointCondition = 'notReady' | 'ready' | 'terminating' | 'removed';

/** Times of a pod on this machine's clock. Undefined: before the watch, or not seen. */
export interface PodTimes {
  readonly name: string;
  readonly node: string | undefined;
  readonly addresses: readonly string[];
  /** Whether it was there when the watch began. */
  readonly isFormer: boolean;
  readonly created: Millis | undefined;
  readonly ready: Millis | undefined;
  /** When its deletion was requested. */
  readonly deleted: Millis | undefined;
  /** When its object was removed. */
  readonly removed: Millis | undefined;
}

/** A new condition of an endpoint. */
export interface EndpointChange {
  readonly at: Millis;
  /** Name of the Service; of a node's change with port and family, as the agent writes it. */
  readonly service: string;
  readonly address: string;
  readonly condition: EndpointCondition;
}

/** A change of an EndpointSlice. */
export interface SliceChange extends EndpointChange {
  /** Whether this is the state at the begin of the watch. */
  readonly isBefore: boolean;
}

/** A change that a node's kernel has got. */
export interface NodeChange extends EndpointChange {
  readonly node: string;
}

/** Lost packets that an agent reported. They were lost up to `window` before `at`. */
export interface PacketLoss {
  readonly at: Millis;
  readonly node: string;
  readonly service: string;
  readonly cause: string;
  readonly why: string;
  readonly certainty: string;
  readonly count: number;
}

/**
 * Outcome of a request, as the lab's load generator names it. `timeout`: no connection in time; `unanswered`: a connection, and no answer in time;
 * `failed`: no HTTP status, and for none of the other reasons.
 */
export type RequestOutcome =
  | 'answered'
  | 'timeout'
  | 'unanswered'
  | 'dropped'
  | 'refused'
  | 'reset'
  | 'empty'
  | 'unreachable'
  | 'error'
  | 'failed';

/** A request of the plug-in. */
export interface RequestResult {
  readonly sentAt: Millis;
  readonly doneAt: Millis;
  readonly outcome: RequestOutcome;
}

/** An agent that was watched. */
export interface WatchedNode {
  readonly node: string;
  /** It is beside another proxy, and its applies are no later than those of that proxy. */
  readonly isObserver: boolean;
  /** Largest error of its times on this machine's clock, in milliseconds. Undefined: it sent nothing. */
  readonly accuracy: Millis | undefined;
  /** Why its lost packets are not known; undefined if they are. */
  readonly blindness: string | undefined;
}

/** Everything that was seen during one rollout, on this machine's clock. */
export interface RolloutRecording {
  readonly begin: Millis;
  /** Undefined: it did not end in time. */
  readonly end: Millis | undefined;
  readonly pods: readonly PodTimes[];
  readonly slices: readonly SliceChange[];
  readonly nodes: readonly WatchedNode[];
  readonly applies: readonly NodeChange[];
  readonly packets: readonly PacketLoss[];
  /** Undefined: none were sent. */
  readonly requests: readonly RequestResult[] | undefined;
}
