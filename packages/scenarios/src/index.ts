export type * from './scenario.ts';
export { loadScenario } from './load-scenario.ts';
export { allScenarios } from './all-scenarios.ts';
export * from './verdict.ts';
export * from './scenario-state.ts';
export * from './cluster-objects.ts';
export * from './run-on-table.ts';
