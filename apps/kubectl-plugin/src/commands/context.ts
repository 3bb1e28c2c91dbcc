import type { Clock } from '@switchyard/core';
import type { Config } from '../config.ts';
import type { FoundAgents } from '../access/agents.ts';
import type { Kubectl } from '../access/kubectl.ts';

/** Access of a command to its arguments, the cluster and the terminal. */
export interface CommandContext {
  readonly config: Config;
  readonly kubectl: Kubectl;
  /** Finds agents, of these nodes or of all, and warns of those that cannot be reached. */
  readonly findAgents: (nodes?: readonly string[]) => Promise<FoundAgents>;
  readonly clock: Clock;
  readonly print: (text: string) => void;
  /** For people, on standard error. */
  readonly warn: (text: string) => void;
}

/** Exit status: see `usage`. */
export type ExitStatus = 0 | 2;
