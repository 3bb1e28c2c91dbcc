import type { LabProcess } from '@switchyard/lab';
import type { RunSettings } from '../run-record.ts';
import type { Agents } from '../stage/agents.ts';
import type { LoadBalancer } from '../stage/load-balancer.ts';
import type { Stage } from '../stage/stage.ts';

/** Everything that plays while an app is rolled. */
export interface Scene {
  readonly stage: Stage;
  readonly agents: Agents;
  readonly loadBalancer: LoadBalancer;
  readonly settings: RunSettings;
}

/** The programs whose end is the experiment's end. */
export function programsOf({ agents, loadBalancer }: Scene): readonly LabProcess[] {
  return [...agents.byNode.values(), loadBalancer.program];
}
