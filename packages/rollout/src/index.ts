/**
 * One rolling update under an open loop of requests, with observers of pods, slices, proxies and load balancer, and its summary: losses,
 * their causes, and the prediction of the loss model from the observed times. Runs on a lab's cluster with any Service proxy.
 */
export type * from './run-record.ts';
export type * from './run-summary.ts';
export { type Profile, type ProfileChanges, profiles, healthCheckOf } from './profiles.ts';
export { type Picked, rolloutTimes } from './rollout-times.ts';
export { appliedAt, type Bounds, observationSlack, proxyDelay } from './sync-bounds.ts';
export { type ExplainAt, summarise } from './summarise.ts';
export { explainFrom, type ExplainSettings } from './explain-at.ts';
export { timelineSvg } from './report/timeline-svg.ts';
export { timelineStyle } from './report/style-sheet.ts';
export { type App, type AppOptions, deployApp, removeApp, type Workload } from './rollout/app.ts';
export { type Proxies, type RolloutSetup } from './rollout/rollout-setup.ts';
export { servingPods } from './rollout/app-pods.ts';
export { loadBalancerTarget, type LoadTarget, type SettledApp } from './rollout/settle.ts';
export { nodePortTarget, rollOut, type RollOutWork } from './rollout/roll-out.ts';
export { type RolloutProgress, silentProgress } from './rollout/progress.ts';
export type { Experiment } from './experiment/experiment.ts';
export type { Frontend, LoadBalancer, LoadBalancerSettings, ServiceName } from './experiment/load-balancer.ts';
export { type LoadBalancerHost, prepareLoadBalancerHost } from './experiment/load-balancer-host.ts';
export { checkWritable } from './check-writable.ts';
export { inBackground } from './in-background.ts';
export { openLoop, type OpenLoop } from './open-loop.ts';
export { awaitCondition } from './experiment/await-condition.ts';
export { causeText } from './report/result-table.ts';
