import { flowText, healthStepText, isOfMatrix, type Scenario, type ScenarioStep } from '@switchyard/scenarios';

/**
 * The id of a step's check, stable and unique within its case. In scenario files `line 23`. In the matrix `outside/tcp`, where each
 * source and protocol occurs once, and `health`; in cases that change the cluster, `after 20 changes: ` and the flow. Undefined for a
 * step that only changes the cluster.
 */
export function checkIdOf(scenario: Scenario, step: ScenarioStep): string | undefined {
  if (!isLook(step)) return undefined;
  if (!isOfMatrix(scenario)) return `line ${step.line}`;
  if (scenario.steps.every(isLook)) {
    return step.kind === 'flow' ? `${step.flow.from}/${step.flow.protocol.toLowerCase()}` : 'health';
  }
  const changes = scenario.steps.filter((one) => one.line < step.line && !isLook(one)).length;
  return `after ${changes} changes: ${lookText(step)}`;
}

function isLook({ kind }: ScenarioStep): boolean {
  return kind === 'flow' || kind === 'healthCheck' || kind === 'restartAgent';
}

function lookText(step: ScenarioStep): string {
  if (step.kind === 'flow') return flowText(step.flow);
  return step.kind === 'healthCheck' ? healthStepText(step.check) : 'restart';
}
