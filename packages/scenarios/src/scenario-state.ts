import type { IpAddress } from '@switchyard/core';
import type { Scenario, ScenarioEndpoint, ScenarioService, ScenarioStep } from './scenario.ts';

/** The cluster at one point of a scenario. */
export interface ScenarioState {
  readonly services: ReadonlyMap<string, ScenarioService>;
  readonly endpoints: readonly ScenarioEndpoint[];
  /** Address of node1's Node object in the scenario's own family; undefined: the address of the plan. */
  readonly nodeAddress: IpAddress | undefined;
  /** ServiceCIDR objects by name, beside the one that the cluster began with. */
  readonly serviceCidrs: ReadonlyMap<string, string>;
}

/** A cluster without Services. */
export const emptyState: ScenarioState = {
  services: new Map(),
  endpoints: [],
  nodeAddress: undefined,
  serviceCidrs: new Map(),
};

/** The state before the first step. */
export function firstState(scenario: Scenario): ScenarioState {
  return {
    ...emptyState,
    services: new Map(scenario.services.map((service) => [service.name, service])),
    endpoints: scenario.endpoints,
  };
}

/** The state after a step; the same object if the step only checks. */
export function nextState(state: ScenarioState, step: ScenarioStep): ScenarioState {
  switch (step.kind) {
    case 'putService':
      return { ...state, services: new Map([...state.services, [step.service.name, step.service]]) };
    case 'removeService':
      return {
        ...state,
        services: new Map([...state.services].filter(([name]) => name !== step.service)),
        endpoints: state.endpoints.filter((endpoint) => endpoint.service !== step.service),
      };
    case 'putEndpoint':
      return { ...state, endpoints: [...without(state, step.endpoint), step.endpoint] };
    case 'removeEndpoint':
      return {
        ...state,
        endpoints: state.endpoints.filter((one) => one.service !== step.service || one.ip !== step.ip),
      };
    case 'nodeAddress':
      return { ...state, nodeAddress: step.address };
    case 'putServiceCidr':
      return { ...state, serviceCidrs: new Map([...state.serviceCidrs, [step.name, step.cidr]]) };
    case 'removeServiceCidr':
      return { ...state, serviceCidrs: new Map([...state.serviceCidrs].filter(([name]) => name !== step.name)) };
    default:
      return state;
  }
}

/** An endpoint replaces the one with the same Service, address and slice. */
function without(state: ScenarioState, endpoint: ScenarioEndpoint): readonly ScenarioEndpoint[] {
  return state.endpoints.filter(
    (one) => one.service !== endpoint.service || one.ip !== endpoint.ip || one.slice !== endpoint.slice,
  );
}
