export * from './apply/driver.ts';
export * from './apply/apply-engine.ts';
export * from './dataplane-backend.ts';
export * from '../base/bounded-runner.ts';
export type { FamilyStatus, Failure, ReconcilerStatus } from './reconcile/family-log.ts';
export type { AfterApply, FamilyOptions, ReconcileTiming } from './reconcile/family-reconciler.ts';
export { withFailed } from './reconcile/large-services.ts';
export * from './reconcile/reconciler.ts';
export {
  flowJudge,
  type FlowJudge,
  type FormerEndpoints,
  type StaleFlowOptions,
  type UdpFlow,
} from './conntrack/stale-flows.ts';
export type { FlowCriteria } from './reconcile/family-flows.ts';
export * from './reconcile/service-counts.ts';
