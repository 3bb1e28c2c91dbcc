import type { Scenario, ScenarioEndpoint, ScenarioFlow, ScenarioService } from '@switchyard/scenarios';

/** Flows of a scenario, in the order of its steps. */
export function flowsOf({ steps }: Pick<Scenario, 'steps'>): readonly ScenarioFlow[] {
  return steps.flatMap((step) => (step.kind === 'flow' ? [step.flow] : []));
}

/** Services that the cluster holds at first, and those that steps put. */
export function servicesOf({ services, steps }: Pick<Scenario, 'services' | 'steps'>): readonly ScenarioService[] {
  return [...services, ...steps.flatMap((step) => (step.kind === 'putService' ? [step.service] : []))];
}

/** Endpoints that the cluster holds at first, and those that steps put. */
export function endpointsOf({ endpoints, steps }: Pick<Scenario, 'endpoints' | 'steps'>): readonly ScenarioEndpoint[] {
  return [...endpoints, ...steps.flatMap((step) => (step.kind === 'putEndpoint' ? [step.endpoint] : []))];
}
