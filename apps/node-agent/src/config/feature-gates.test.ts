import { describe, expect, test } from 'vitest';
import {
  effectiveFeatureGates,
  featureGates,
  featureStageOf,
  gateStateIn,
  gateWarnings,
  idleGates,
} from './feature-gates.ts';
import { gateTable } from './gate-table.ts';
import { gatesOfOthers, otherReleaseGates } from './other-gates.ts';

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
    ['ComponentSLIs', true],
    ['SeccompDefault', true],
    ['ValidatingAdmissionPolicy', true],
    ['InTreePluginAWSUnregister', true],
    ['KubeProxyNFTablesLocalhostNodePorts', true],
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

  test('every fault is reported, and nothing else', () => {
    const set = gates(['Nothing', true], ['SidecarContainers', true], ['WinDSR', false]);
    expect(gateWarnings(set)).toEqual([
      'unrecognized feature gate: Nothing (this agent knows no such gate)',
      'cannot set feature gate WinDSR to false, feature is locked to true',
    ]);
    expect([...idleGates(gates(['Nothing', true]))]).toEqual([]);
  });

  test('gates without effect are listed by their reason', () => {
    const set = gates(['SidecarContainers', true], ['NativeHistograms', true], ['NodeSwap', true], ['AllBeta', true]);
    expect([...idleGates(set)]).toEqual([
      ['other components of Kubernetes read it, no proxy does', ['SidecarContainers', 'NodeSwap']],
      ['histograms have the buckets of kube-proxy only', ['NativeHistograms']],
    ]);
  });

  test.each([
    ['AllAlpha', ['NativeHistograms', 'LoggingAlphaOptions']],
    ['AllBeta', ['NFTablesNetlink', 'ContextualLogging']],
  ])('%s turns idle gates from their default, with a line for each reason: %j', (name, expected) => {
    const told = [...idleGates(gates([name, name === 'AllAlpha'])).values()].flat();
    expect(told).toEqual(expect.arrayContaining(expected));
    expect(idleGates(gates([name, name !== 'AllAlpha'])).size).toBe(0);
  });

  const permanent = gateTable.filter(({ goneIn }) => goneIn !== undefined).map(({ name }) => name);

  test.each(permanent)('%s is permanent: it can be named, not turned off, and has no state', (name) => {
    expect(gateWarnings(gates([name, true]))).toEqual([]);
    expect([...idleGates(gates([name, true]))]).toEqual([['the feature is permanent', [name]]]);
    expect(gateWarnings(gates([name, false]))).toEqual([
      `cannot turn off feature gate ${name}: its feature is permanent`,
    ]);
    expect(idleGates(gates([name, false])).size).toBe(0);
    expect(effectiveFeatureGates(gates()).has(name)).toBe(false);
  });

  test.each(gateTable.filter(({ meaning }) => meaning.kind === 'none').map(({ name }) => name))(
    '%s, set away from its default, gives one reason',
    (name) => {
      const told = [true, false].map((value) => {
        const set = gates([name, value]);
        return [...gateWarnings(set), ...idleGates(set).keys()];
      });
      expect(told.map((lines) => lines.length)).toEqual([1, 1]);
      expect(told.flat().filter((why) => why.length < 10)).toEqual([]);
    },
  );

  test.each([
    ['ALPHA', 'NativeHistograms'],
    ['BETA', 'ComponentFlagz'],
    ['', 'NFTablesProxyMode'],
    ['DEPRECATED', 'AllowServiceExternalIPs'],
    ['', 'SidecarContainers'],
  ])('metrics spell the stage %s of %s', (stage, name) => {
    expect(featureStageOf(name)).toBe(stage);
  });

  test.each([
    [26, 'ALPHA', false, false],
    [29, 'ALPHA', false, false],
    [31, 'BETA', true, false],
    [33, 'GA', true, true],
    [38, 'GA', true, true],
  ])('NFTablesProxyMode in 1.%d: %s, default %s, locked %s', (minor, stage, on, isLocked) => {
    const found = gateTable.filter(({ name }) => name === 'NFTablesProxyMode');
    expect(found.map((one) => gateStateIn(minor, one))).toMatchObject([{ stage, default: on, isLocked }]);
  });

  test.each([
    [35, false],
    [36, true],
  ])('TopologyAwareHints in 1.%d: permanent %s', (minor, isPermanent) => {
    const found = gateTable.filter(({ name }) => name === 'TopologyAwareHints');
    expect(found.map((one) => gateStateIn(minor, one))).toMatchObject([{ isPermanent, isLocked: true, default: true }]);
  });

  test('stages of a gate are in the order of releases, and a removed one was locked before', () => {
    for (const { name, stages, goneIn = 99 } of gateTable) {
      const releases = [...stages.map(({ since }) => since), goneIn];
      expect(releases, name).toEqual([...new Set(releases)].toSorted((a, b) => a - b));
      expect(goneIn === 99 || stages.at(-1)?.isLocked, name).toBe(true);
    }
  });

  test('AllAlpha leaves our own gates alone', () => {
    const own = gateTable.filter(({ isOurs }) => isOurs).map(({ name }) => name);
    expect(own).toEqual(['SwitchyardLoadBalancerIPModeRouter']);
    const effective = effectiveFeatureGates(gates(['AllAlpha', true]));
    expect(own.map((name) => effective.get(name))).toEqual([false]);
  });

  test('gates are listed by name, each once', () => {
    const names = gateTable.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)].toSorted());
  });

  test('a gate is either of others or has a state here', () => {
    const others = new Set([...gatesOfOthers, ...otherReleaseGates]);
    expect(gateTable.filter(({ name }) => others.has(name))).toEqual([]);
    expect([...gatesOfOthers].filter((name) => !/^[A-Z]\w{5,}$/.test(name) && name !== 'KMSv1')).toEqual([]);
    expect([gatesOfOthers.size, new Set(otherReleaseGates).size]).toEqual([226, otherReleaseGates.length]);
  });
});
