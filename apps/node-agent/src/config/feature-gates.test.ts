import { describe, expect, test } from 'vitest';
import { checkFeatureGates, effectiveFeatureGates, featureGates } from './feature-gates.ts';

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
    expect(checkFeatureGates(gates([name, true]))).toBeUndefined();
    expect(checkFeatureGates(gates([name, false]))).toBe(
      `cannot set feature gate ${name} to false, feature is locked to true`,
    );
  });
});
