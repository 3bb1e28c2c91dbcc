export type * from './scenario.ts';
export { loadScenario } from './load-scenario.ts';
