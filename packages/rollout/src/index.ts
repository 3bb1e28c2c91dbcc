/**
 * One rolling update under an open loop of requests, with observers of pods, slices, proxies and load balancer, and its summary: losses,
 * their causes, and the prediction of the loss model from the observed times. Runs on a lab's cluster, or on any other, with any Service proxy.
 */
export type * from './run-record.ts';
export type * from './run-record.ts';
export { type Profile, type ProfileChanges, profiles, healthCheckOf } from './profiles.ts';
export { type Picked, rolloutTimes } from './rollout-times.ts';
export { appliedAt, type Bounds, observationSlack, proxyDelay } from './rollout-times.ts';
export { type ExplainAt, summarise } from './summarise.ts';
export { explainFrom, type ExplainSettings } from './explain-at.ts';
export { timelineSvg } from './report/timeline-svg.ts';
export { timelineStyle } from './report/report-html.ts';
export { type App, type AppOptions, deployApp, healthCheckNodePort, removeApp, type Workload } from './rollout/app.ts';
export { type Proxies, type RolloutSetup } from './rollout/rollout-setup.ts';
export {
  hostSender,
  labSite,
  type RequestProber,
  type RequestSender,
  type RolloutSite,
  type SiteNode,
} from './rollout/rollout-site.ts';
export { servingPods } from './rollout/pod-moments.ts';
export { awaitAnswer, loadBalancerTarget, type LoadTarget, type SettledApp } from './rollout/settle.ts';
export { nodePortTarget, rollOut, type RollOutWork } from './rollout/roll-out.ts';
export { type RolloutProgress, silentProgress } from './rollout/rollout-setup.ts';
export type { Experiment } from './experiment/experiment.ts';
export type { Frontend, LoadBalancer, LoadBalancerSettings, ServiceName } from './experiment/load-balancer.ts';
export { type LoadBalancerHost, prepareLoadBalancerHost } from './experiment/load-balancer.ts';
export { checkWritable } from './config.ts';
export {
  type HealthObserver,
  inBackground,
  observeHealth,
  observeSlices,
  type SliceObserver,
} from './rollout/observe.ts';
export { openLoop, type OpenLoop } from './rollout/load-during-rollout.ts';
export { awaitCondition } from './experiment/experiment.ts';
export { causeText } from './report/timeline-svg.ts';
