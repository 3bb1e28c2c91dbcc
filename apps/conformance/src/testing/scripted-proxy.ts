import { type Millis, millis } from '@switchyard/core';
import type { ScenarioState } from '@switchyard/scenarios';

/** Why the kernel of the node under test comes to hold something else. */
export type Cause = 'put' | 'kill' | 'stop' | 'start';

/** A scripted proxy. Each part of its behaviour may be wrong on its own. */
export interface ScriptedProxy {
  /** Content of the kernel when the proxy has followed the cluster. */
  readonly apply: (wanted: ScenarioState, kernel: ScenarioState, cause: Cause) => ScenarioState;
  /** Content of the kernel when the process has ended. */
  readonly ended: (kernel: ScenarioState, cause: Cause) => ScenarioState;
  /** Content of the kernel from the start of the process until it has followed. */
  readonly starting: (kernel: ScenarioState) => ScenarioState;
  /** Whether the kernel follows the cluster though no process is there. */
  readonly followsWhileDown: boolean;
  /** From the start to the first answer of what is new. */
  readonly startsWithin: Millis;
  /** Results of each running load. */
  readonly lostBy: (cause: Cause) => number;
  /** Whether established connections break. */
  readonly breaksBy: (cause: Cause, kernel: ScenarioState) => boolean;
  /** Which UDP clients that keep their port are left at the endpoint that they had. */
  readonly staleFlows: 'none' | 'all' | 'without endpoints';
  /** Whether UDP clients that keep their port stay at an endpoint for as long as it serves, be there ready ones or not. */
  readonly leavesServing: boolean;
  /** Whether a connected UDP socket stays at the endpoint that it had first. */
  readonly keepsSockets: boolean;
  /** Whether answers come to sockets that are not connected from the endpoint's own address, which they ignore. */
  readonly answersAsEndpoint: boolean;
  /** Clients of session affinity. */
  readonly affinity: 'right' | 'none' | 'for ever' | 'from the first visit';
  /** Answer of the health check, given the right one. */
  readonly health: (text: string) => string;
}

/** One that does everything right. */
export const rightProxy: ScriptedProxy = {
  apply: (wanted) => wanted,
  ended: (kernel) => kernel,
  starting: (kernel) => kernel,
  followsWhileDown: false,
  startsWithin: millis(300),
  lostBy: () => 0,
  breaksBy: () => false,
  staleFlows: 'none',
  leavesServing: true,
  keepsSockets: false,
  answersAsEndpoint: false,
  affinity: 'right',
  health: (text) => text,
};
