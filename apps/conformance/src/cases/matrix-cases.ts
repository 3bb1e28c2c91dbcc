import {
  dataplaneNamed,
  endingScenarios,
  type MatrixScenario,
  matrixScenarios,
  type Scenario,
} from '@switchyard/scenarios';
import type { CatalogueOptions, ScenarioCase } from '../model/case.ts';
import { scenarioNeeds, scenarioTags } from './scenario-cases.ts';

/**
 * Policy by endpoint state by source class by protocol by family by frontend kind, all in one batch; and the orders in which
 * endpoints end.
 */
export function matrixCases({ dataplane }: Pick<CatalogueOptions, 'dataplane'>): readonly ScenarioCase[] {
  return [
    ...matrixScenarios(dataplaneNamed(dataplane)).map((one) => matrixCase(matrixCaseId(one), one.scenario, 'matrix')),
    ...endingScenarios(dataplaneNamed(dataplane)).map((scenario) =>
      matrixCase(`matrix/ending-orders/${scenario.ipFamily.toLowerCase()}`, scenario, undefined),
    ),
  ];
}

function matrixCase(id: string, scenario: Scenario, batch: string | undefined): ScenarioCase {
  return {
    kind: 'scenario',
    id,
    title: scenario.name,
    why: scenario.why,
    tags: ['matrix', ...scenarioTags(scenario)],
    families: scenario.ipFamily,
    needs: scenarioNeeds(scenario),
    notFor: undefined,
    scenario,
    batch,
  };
}

/** `matrix/nodePort/Local/ready-remote-only/ipv6`. */
function matrixCaseId({ frontend, policy, state, ipFamily }: MatrixScenario): string {
  return `matrix/${frontend}/${policy}/${state}/${ipFamily.toLowerCase()}`;
}
