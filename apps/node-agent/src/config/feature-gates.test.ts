import { describe, expect, test } from 'vitest';
import { effectiveFeatureGates, featureGates, gateWarnings, idleGates } from './feature-gates.ts';
import { gatesOfOthers } from './kubernetes-gates.ts';

const gates = (...set: readonly (readonly [string, boolean])[]): ReadonlyMap<string, boolean> => new Map(set);

describe('feature gates', () => {
  test.each<readonly [string, ReadonlyMap<string, boolean>, string, boolean]>([
    ['nothing set: one in alpha is off', gates(), 'NativeHistograms', false],
    ['nothing set: one in beta is on', gates(), 'ComponentFlagz', true],
    ['nothing set: a general one is on', gates(), 'AllowServiceExternalIPs', true],
    ['set by name', gates(['AllowServiceExternalIPs', false]), 'AllowServiceExternalIPs', false],
    ['all in alpha on', gates(['AllAlpha', true]), 'NativeHistograms', true],
    [
      'all in alpha on, but this one',
      gates(['AllAlpha', true], ['NativeHistograms', false]),
      'NativeHistograms',
      false,
    ],
    ['all in beta off', gates(['AllBeta', false]), 'ComponentStatusz', false],
    ['all in beta off leaves general ones', gates(['AllBeta', false]), 'AllowServiceExternalIPs', true],
  ])('%s', (_, set, name, expected) => {
    expect(effectiveFeatureGates(set).get(name)).toBe(expected);
  });

  test('every gate has a state', () => {
    expect([...effectiveFeatureGates(gates()).keys()]).toEqual(featureGates.map(({ name }) => name));
  });

  test.each(featureGates.filter(({ isLocked }) => isLocked).map(({ name }) => name))('%s is locked on', (name) => {
    expect(gateWarnings(gates([name, true]))).toEqual([]);
    expect(gateWarnings(gates([name, false]))).toEqual([
      `cannot set feature gate ${name} to false, feature is locked to true`,
    ]);
    expect(effectiveFeatureGates(gates([name, false])).get(name)).toBe(true);
  });

  test.each([
    ['SidecarContainers', false],
    ['DynamicResourceAllocation', true],
    ['KMSv1', true],
    ['AllAlpha', true],
    ['AllBeta', false],
    ['NFTablesNetlink', false],
    ['KubeProxyIPVS', true],
    ['TopologyAwareHints', true],
    ['KubeProxyDrainingTerminatingNodes', true],
    ['PodSecurity', true],
    ['CompositePodGroup', true],
  ])('%s is known', (name, value) => {
    expect(gateWarnings(gates([name, value]))).toEqual([]);
  });

  test('a permanent feature cannot be turned off', () => {
    expect(gateWarnings(gates(['MinimizeIPTablesRestore', false]))).toEqual([
      'cannot turn off feature gate MinimizeIPTablesRestore: its feature is permanent',
    ]);
  });

  test.each([
    ['SidecarContainer', 'did you mean SidecarContainers?'],
    ['sidecarcontainers', 'did you mean SidecarContainers?'],
    ['AlowServiceExternalIP', 'did you mean AllowServiceExternalIPs?'],
    ['WinDRS', 'did you mean WinDSR?'],
    ['RouteExternalCertificate', 'this agent knows no such gate'],
    ['', 'this agent knows no such gate'],
  ])('%s is unknown: %s', (name, hint) => {
    expect(gateWarnings(gates([name, true]))).toEqual([`unrecognized feature gate: ${name} (${hint})`]);
  });

  test('every fault is told, and nothing else', () => {
    const set = gates(['Nothing', true], ['SidecarContainers', true], ['WinDSR', false]);
    expect(gateWarnings(set)).toEqual([
      'unrecognized feature gate: Nothing (this agent knows no such gate)',
      'cannot set feature gate WinDSR to false, feature is locked to true',
    ]);
    expect([...idleGates(gates(['Nothing', true]))]).toEqual([]);
  });

  test('gates without effect are told by their reason', () => {
    const set = gates(['SidecarContainers', true], ['NativeHistograms', true], ['NodeSwap', true], ['AllAlpha', true]);
    expect([...idleGates(set)]).toEqual([
      ['other components of Kubernetes read it, no proxy does', ['SidecarContainers', 'NodeSwap']],
      ['histograms have the buckets of kube-proxy only', ['NativeHistograms']],
    ]);
  });

  test('a gate is either of others or has a state here', () => {
    expect(featureGates.filter(({ name }) => gatesOfOthers.has(name))).toEqual([]);
    expect([...gatesOfOthers].filter((name) => !/^[A-Z]\w{5,}$/.test(name) && name !== 'KMSv1')).toEqual([]);
    expect(gatesOfOthers.size).toBe(226);
  });
});
