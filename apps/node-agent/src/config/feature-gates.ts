import { gatesOfOthers } from './kubernetes-gates.ts';
import { nearestName } from './nearest-name.ts';
import { otherReleaseGates, permanentGates } from './other-release-gates.ts';

/** One feature gate that is about a proxy, or about every component. */
export interface FeatureGate {
  readonly name: string;
  readonly stage: 'GA' | 'BETA' | 'ALPHA';
  readonly default: boolean;
  /** Cannot be set to anything but its default. */
  readonly isLocked: boolean;
  /** What it does here, or why nothing. */
  readonly meaning:
    | { readonly kind: 'effect'; readonly text: string }
    | { readonly kind: 'none'; readonly why: string };
}

type Given = Pick<FeatureGate, 'name' | 'stage'> & Partial<FeatureGate>;

const gate = (given: Given, effect: string): FeatureGate => ({
  default: given.stage !== 'ALPHA',
  isLocked: false,
  meaning: { kind: 'effect', text: effect },
  ...given,
});
const idle = (given: Given, why: string): FeatureGate => gate({ ...given, meaning: { kind: 'none', why } }, '');

const ga = (name: string): Given => ({ name, stage: 'GA' });
const beta = (name: string): Given => ({ name, stage: 'BETA' });
const alpha = (name: string): Given => ({ name, stage: 'ALPHA' });
const locked = (name: string): Given => ({ ...ga(name), isLocked: true });

/** Every gate that has a state here, by name. */
export const featureGates: readonly FeatureGate[] = [
  gate(alpha('AllAlpha'), 'sets every gate in alpha that is not set by itself'),
  gate({ ...beta('AllBeta'), default: false }, 'sets every gate in beta that is not set by itself'),
  gate(ga('AllowServiceExternalIPs'), 'off: external IPs of Services get no rules'),
  gate(beta('ComponentFlagz'), '`/flagz` on the metrics server'),
  gate(beta('ComponentStatusz'), '`/statusz` on the metrics server'),
  idle(beta('ContextualLogging'), 'every log line has its context as fields'),
  idle(alpha('LoggingAlphaOptions'), 'the options it allows have no effect'),
  idle(beta('LoggingBetaOptions'), 'both log formats are always available'),
  idle({ ...ga('KubeProxyIPVS') }, 'the ipvs mode is not here (KEP-5495: deprecated, removed in 1.43)'),
  gate(locked('MultiCIDRServiceAllocator'), 'ServiceCIDR objects are watched'),
  idle(beta('NFTablesNetlink'), 'the nftables mode always uses netlink'),
  gate(locked('NFTablesProxyMode'), 'the nftables mode exists'),
  idle(alpha('NativeHistograms'), 'histograms have the buckets of kube-proxy only'),
  gate(locked('PreferSameTrafficDistribution'), 'node hints of endpoints are obeyed'),
  idle(locked('WinDSR'), 'only Windows reads it'),
  idle(locked('WinOverlay'), 'only Windows reads it'),
];

/** Names of other components' gates, of every release. */
const othersNames: ReadonlySet<string> = new Set([...gatesOfOthers, ...otherReleaseGates]);
const byName: ReadonlyMap<string, FeatureGate> = new Map(featureGates.map((one) => [one.name, one]));

/**
 * Gates as set that the agent does not obey, one sentence each. They are warnings, not errors: another Kubernetes minor
 * may allow them.
 */
export function gateWarnings(set: ReadonlyMap<string, boolean>): readonly string[] {
  return [...set].flatMap(([name, value]) => {
    const known = byName.get(name);
    if (permanentGates.has(name))
      return value ? [] : [`cannot turn off feature gate ${name}: its feature is permanent`];
    if (known === undefined) return othersNames.has(name) ? [] : [unknownText(name)];
    if (!known.isLocked || value === known.default) return [];
    return [`cannot set feature gate ${name} to ${value}, feature is locked to ${known.default}`];
  });
}

/** Why gates that are set do nothing here: names by reason. */
export function idleGates(set: ReadonlyMap<string, boolean>): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, readonly string[]>();
  for (const name of set.keys()) {
    if (isUnknown(name)) continue;
    const meaning = byName.get(name)?.meaning ?? (permanentGates.has(name) ? permanent : ofOthers);
    if (meaning.kind === 'none') names.set(meaning.why, [...(names.get(meaning.why) ?? []), name]);
  }
  return names;
}

/** Gates as set that no Kubernetes of 1.26 to 1.38 is known to have. */
export function unknownGates(set: ReadonlyMap<string, boolean>): readonly string[] {
  return [...set.keys()].filter(isUnknown);
}

function isUnknown(name: string): boolean {
  return !byName.has(name) && !permanentGates.has(name) && !othersNames.has(name);
}

const permanent: FeatureGate['meaning'] = { kind: 'none', why: 'their features are permanent' };
const ofOthers: FeatureGate['meaning'] = { kind: 'none', why: 'other components of Kubernetes read it, no proxy does' };

/** The state of every gate, given those that are set. */
export function effectiveFeatureGates(set: ReadonlyMap<string, boolean>): ReadonlyMap<string, boolean> {
  const all = { ALPHA: set.get('AllAlpha'), BETA: set.get('AllBeta'), GA: undefined };
  return new Map(
    featureGates.map((one) => [
      one.name,
      one.isLocked ? one.default : (set.get(one.name) ?? all[one.stage] ?? one.default),
    ]),
  );
}

/** The stage of a gate as metrics spell it: empty for general availability, and for a gate that is not known. */
export function featureStageOf(name: string): 'ALPHA' | 'BETA' | '' {
  const stage = byName.get(name)?.stage ?? 'GA';
  return stage === 'GA' ? '' : stage;
}

function unknownText(name: string): string {
  const close = nearestName(name, [...byName.keys(), ...permanentGates, ...othersNames]);
  return `unrecognized feature gate: ${name} (${close === undefined ? 'this agent knows no such gate' : `did you mean ${close}?`})`;
}
