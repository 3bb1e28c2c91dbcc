import { seconds } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { healthProfile } from '../health-profile/health-profiles.ts';
import type { CheckConfig } from './check-flags.ts';
import { type CheckReport, checkService } from './check-service.ts';
import { type ExampleChanges, exampleNode, exampleObjects } from '@switchyard/loss/testing';

const config: CheckConfig = {
  kind: 'check',
  kubeconfig: '/k',
  namespace: 'shop',
  service: 'web',
  deployment: undefined,
  profiles: [healthProfile('cloud-provider-kind')],
  drain: undefined,
  proxy: 'kube-proxy',
  isFastDrain: false,
  output: 'table',
};
const check = (changes: ExampleChanges = {}, flags: Partial<CheckConfig> = {}): CheckReport =>
  checkService(exampleObjects(changes), { ...config, ...flags });
const reasons = ({ warnings, deployments }: CheckReport): readonly string[] =>
  [...warnings, ...deployments.flatMap((one) => one.warnings)].map(({ reason }) => reason);
const preStop = (duration: number): object => ({ lifecycle: { preStop: { sleep: { seconds: duration } } } });
const drain: Partial<CheckConfig> = { drain: seconds(0) };

describe('checkService', () => {
  test('a preStop sleep of h + fall x interval loses nothing', () => {
    const report = check({ container: preStop(17) }, drain);
    expect(report.isLossless).toBe(true);
    expect(report.deployments[0]).toMatchObject({
      serves: seconds(17),
      rows: [{ profile: 'cloud-provider-kind', expected: 0, worst: 0 }],
      warnings: [],
    });
    expect(report.deployments[0]?.rows[0]?.mustServe).toBeCloseTo(16_150);
  });
  test('the same behind a slower load balancer does not', () => {
    const report = check({ container: preStop(17) }, { ...drain, profiles: [healthProfile('google-nlb')] });
    expect(report.isLossless).toBe(false);
    expect(report.deployments[0]?.rows[0]?.worst).toBeGreaterThan(0);
  });
  test('the Service’s annotations choose the profile and fast drain', () => {
    const annotations = {
      'lb.switchyard.dev/health-check-profile': 'azure-lb',
      'lb.switchyard.dev/fast-drain': 'true',
    };
    const report = check({ annotations }, { profiles: undefined });
    expect(report.deployments[0]?.rows.map(({ profile }) => profile)).toEqual(['azure-lb']);
    expect(report.isFastDrain).toBe(true);
  });
  test('annotations change the profile as they do for the controller', () => {
    const annotations = { 'lb.switchyard.dev/health-check-interval': '2s' };
    const [row] = check({ annotations }, { profiles: undefined }).deployments.flatMap(({ rows }) => rows);
    expect(row).toMatchObject({
      profile: 'cloud-provider-kind, changed',
      noticesAfter: { shortest: 4000, longest: 6000 },
    });
  });
  test('without NodePorts the load balancer follows endpoints in any case', () => {
    expect(check({ service: { allocateLoadBalancerNodePorts: false } }).isFastDrain).toBe(true);
  });
  test.each<[string, ExampleChanges]>([
    ['NodePorts that were allocated before', { service: { ports: [{ port: 80, nodePort: 30080 }] } }],
    ['the transparent path, which goes to nodes', { annotations: { 'lb.switchyard.dev/path': 'transparent' } }],
  ])('allocateLoadBalancerNodePorts: false with %s follows health checks only', (_, changes) => {
    const service = { allocateLoadBalancerNodePorts: false, ...changes.service };
    expect(check({ ...changes, service }).isFastDrain).toBe(false);
  });
  test('a wrong annotation does not matter where the profile is named', () => {
    const annotations = { 'lb.switchyard.dev/health-check-profile': 'elb' };
    expect(check({ annotations }).deployments.length).toBe(1);
  });
  test('an annotation with an unknown profile is refused by name', () => {
    const annotations = { 'lb.switchyard.dev/health-check-profile': 'elb' };
    expect(() => check({ annotations }, { profiles: undefined })).toThrow(
      /annotation lb.switchyard.dev\/health-check-profile: "elb": no health-check profile/,
    );
  });
  test.each<[strategy: string, deployment: object]>([
    ['its surge', {}],
    ['Recreate', { strategy: { type: 'Recreate' } }],
    ['maxUnavailable 1', { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } }],
  ])('a Deployment without replicas has nothing to lose, with %s', (_, deployment) => {
    const report = check({ deployment: { ...deployment, replicas: 0 }, container: preStop(17) }, drain);
    expect(reasons(report)).toEqual(['NoReplicas']);
    expect(report.isLossless).toBe(true);
  });
  test('one without replicas does not make up for another that loses', () => {
    const objects = exampleObjects();
    const [deployment] = objects.deployments;
    const empty = { ...deployment!, metadata: { name: 'empty' }, spec: { ...deployment!.spec!, replicas: 0 } };
    const report = checkService({ ...objects, deployments: [...objects.deployments, empty] }, config);
    expect(report.isLossless).toBe(false);
  });
  test('several Deployments are each predicted, by name', () => {
    const objects = exampleObjects();
    const [deployment] = objects.deployments;
    const canary = { ...deployment!, metadata: { name: 'canary' } };
    const report = checkService({ ...objects, deployments: [...objects.deployments, canary] }, config);
    expect(report.deployments.map(({ workload }) => workload.name)).toEqual(['canary', 'web']);
  });
});

describe('checkService warns', () => {
  const grace = (terminationGracePeriodSeconds: number): object => ({ terminationGracePeriodSeconds });
  const one = { maxSurge: 0, maxUnavailable: 1 };
  test.each<[what: string, reason: string, changes: ExampleChanges, flags: Partial<CheckConfig>]>([
    ['of an app that may stop at SIGTERM', 'DrainUnknown', {}, {}],
    ['of an app that is killed', 'Killed', { pod: grace(20), container: preStop(17) }, { drain: seconds(5) }],
    ['of a grace period that leaves no room', 'GracePeriodTooShort', { pod: grace(10) }, drain],
    ['of an outage without surge', 'Outage', { deployment: { strategy: { rollingUpdate: one } } }, drain],
    [
      'of an outage with a surge that comes too late',
      'Outage',
      { deployment: { strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } } },
      drain,
    ],
    ['of an outage by Recreate', 'Outage', { deployment: { strategy: { type: 'Recreate' } } }, drain],
    [
      'of a rollout that cannot end',
      'RolloutStuck',
      { deployment: { replicas: 2, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } } },
      drain,
    ],
    ['of pods without a node', 'PodsPending', { deployment: { replicas: 3 } }, drain],
    [
      'of pods that are alone on their nodes',
      'LastPodOfNode',
      { deployment: { replicas: 2 }, nodes: ['a', 'b', 'c'].map((name) => exampleNode(name)) },
      drain,
    ],
    ['of nothing to run', 'NoReplicas', { deployment: { replicas: 0 } }, drain],
    ['of nowhere to run', 'NoNodes', { nodes: [exampleNode('a', { unschedulable: true })] }, drain],
    ['of a missing readiness probe', 'NoReadinessProbe', { container: { readinessProbe: undefined } }, drain],
    [
      'of a hook that may do anything',
      'PreStopUnknown',
      { container: { lifecycle: { preStop: { exec: { command: ['/x'] } } } } },
      drain,
    ],
    ['of policy Cluster', 'ClusterPolicy', { service: { externalTrafficPolicy: 'Cluster' } }, drain],
    [
      'of a hole',
      'NoneUp',
      { container: preStop(17) },
      { ...drain, profiles: [healthProfile('cloud-provider-kind-envoy')] },
    ],
    ['of a Service without load balancer', 'NoLoadBalancer', { service: { type: 'NodePort' } }, drain],
  ])('%s: %s', (_, reason, changes, flags) => {
    expect(reasons(check(changes, flags))).toContain(reason);
    expect(reasons(check({ container: preStop(17) }, drain))).not.toContain(reason);
  });
  test('of a Service without Deployment, whose loss is unknown', () => {
    const report = checkService({ ...exampleObjects(), deployments: [] }, config);
    expect(reasons(report)).toEqual(['NoDeployment']);
    expect(report.isLossless).toBe(false);
  });
  test('of a hole only as long as minReadySeconds is shorter than it says', () => {
    const flags = { ...drain, profiles: [healthProfile('cloud-provider-kind-envoy')] };
    const holes = (minReadySeconds: number): readonly string[] =>
      check({ container: preStop(17), deployment: { minReadySeconds } }, flags).deployments.flatMap(({ warnings }) =>
        warnings.map(({ message }) => message),
      );
    expect(holes(0)).toEqual([
      expect.stringContaining('cloud-provider-kind-envoy (in 12 % of the rollouts; minReadySeconds 3'),
    ]);
    expect(holes(3)).toEqual([]);
  });
});
