import { allScenarios, type Scenario } from '@switchyard/scenarios';
import { expect, test } from 'vitest';
import { scenarioObstacle, stepObstacleOnCluster } from './step-obstacles.ts';

const scenarios = allScenarios().filter(({ ipFamily }) => ipFamily === 'IPv4');

const able = { hasZones: true, hasExternalIps: true, isDisruptive: false, balancing: 'runner' } as const;

function named(id: string): Scenario {
  const scenario = scenarios.find((one) => one.id === id);
  if (scenario === undefined) throw new Error(`no scenario ${id}`);
  return scenario;
}

test.each([
  ['cluster-ip', undefined],
  ['etp-local', undefined],
  ['topology-zone', undefined],
  ['host-network-endpoints', /own addresses and ports/],
  ['vip-is-node-address', /an external one/],
  ['etp-leftover', /the API server refuses/],
  ['odd-slices', /written for the addresses of the lab/],
])('%s as a whole', (id, expected) => {
  const obstacle = scenarioObstacle(named(id), able);
  if (expected === undefined) expect(obstacle).toBeUndefined();
  else expect(obstacle).toMatch(expected);
});

test('external IPs need an API server that lets them pass', () => {
  expect(scenarioObstacle(named('external-ip'), able)).toBeUndefined();
  expect(scenarioObstacle(named('external-ip'), { ...able, hasExternalIps: false })).toMatch(/refuses external IPs/);
});

test('zone hints need a zone', () => {
  expect(scenarioObstacle(named('topology-zone'), { ...able, hasZones: false })).toMatch(
    /topology\.kubernetes\.io\/zone/,
  );
  expect(scenarioObstacle(named('cluster-ip'), { ...able, hasZones: false })).toBeUndefined();
});

test.each([
  ['etp-local', /only the node's own address/],
  ['sctp', /SCTP/],
  ['unallocated-cluster-ip', /whose cluster IP/],
])('steps of %s', (id, reason) => {
  const scenario = named(id);
  const reasons = scenario.steps.map((step) => stepObstacleOnCluster(scenario, step, able));
  expect(reasons.some((one) => one !== undefined && reason.test(one))).toBe(true);
});

test('of etp-local only what comes from outside to another address than the node is left out', () => {
  const scenario = named('etp-local');
  const left = scenario.steps.filter((step) => stepObstacleOnCluster(scenario, step, able) !== undefined);
  expect(left.map((step) => (step.kind === 'flow' ? `${step.flow.from} ${step.flow.to}` : step.kind))).toEqual([
    'outside 198.51.100.7',
    'outside 198.51.100.7',
  ]);
});

test('a client that would have become known by a step that is left out is not expected to be', () => {
  const scenario = named('session-affinity');
  const kept = scenario.steps.filter((step) => step.kind === 'flow' && step.flow.kept !== undefined);
  const reasons = kept.map((step) => stepObstacleOnCluster(scenario, step, able));
  // Pods were at the cluster IP; the outside was only ever at the load balancer's address.
  expect(
    kept.map((step, index) => (step.kind === 'flow' ? `${step.flow.from}: ${reasons[index] === undefined}` : '')),
  ).toEqual(kept.map((step) => (step.kind === 'flow' ? `${step.flow.from}: ${step.flow.from === 'pod'}` : '')));
  expect(reasons).toContain('its client would have become known by a step that cannot be done');
});

test('a restart of the proxy must be allowed', () => {
  const scenario = named('restart');
  const restarts = scenario.steps.filter(({ kind }) => kind === 'restartAgent');
  const reasons = (isDisruptive: boolean) =>
    restarts.map((step) => stepObstacleOnCluster(scenario, step, { ...able, isDisruptive }));
  expect(new Set(reasons(false))).toEqual(new Set(['the proxy is only restarted with --disruptive']));
  expect(new Set(reasons(true))).toEqual(new Set([undefined]));
});
