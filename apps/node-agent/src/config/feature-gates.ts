/** One feature gate that kube-proxy knows. */
export interface FeatureGate {
  readonly name: string;
  readonly stage: 'GA' | 'BETA' | 'ALPHA';
  readonly default: boolean;
  /** Cannot be set to anything but its default. */
  readonly isLocked: boolean;
  /** What it does here. */
  readonly effect: string;
}

const gate = (name: string, stage: FeatureGate['stage'], effect: string): FeatureGate => ({
  name,
  stage,
  default: stage !== 'ALPHA',
  isLocked: false,
  effect,
});
const locked = (name: string, effect: string): FeatureGate => ({ ...gate(name, 'GA', effect), isLocked: true });

/** Every gate, by name. */
export const featureGates: readonly FeatureGate[] = [
  { ...gate('AllAlpha', 'ALPHA', 'sets every gate in alpha that is not set by itself') },
  { ...gate('AllBeta', 'BETA', 'sets every gate in beta that is not set by itself'), default: false },
  gate('AllowServiceExternalIPs', 'GA', 'off: external IPs of Services get no rules'),
  gate('ComponentFlagz', 'BETA', '`/flagz` on the metrics server'),
  gate('ComponentStatusz', 'BETA', '`/statusz` on the metrics server'),
  gate('ContextualLogging', 'BETA', 'none: every log line has its context as fields'),
  gate('LoggingAlphaOptions', 'ALPHA', 'none: the options it allows have no effect'),
  gate('LoggingBetaOptions', 'BETA', 'none: both log formats are always available'),
  locked('MultiCIDRServiceAllocator', 'ServiceCIDR objects are watched'),
  locked('NFTablesProxyMode', 'the nftables mode exists'),
  gate('NativeHistograms', 'ALPHA', 'none: histograms have the buckets of kube-proxy only'),
  locked('PreferSameTrafficDistribution', 'node hints of endpoints are obeyed'),
  locked('WinDSR', 'none: Windows'),
  locked('WinOverlay', 'none: Windows'),
];

/** What is wrong with gates as set, or undefined. */
export function checkFeatureGates(set: ReadonlyMap<string, boolean>): string | undefined {
  const faults = [...set].flatMap(([name, value]) => {
    const known = featureGates.find((one) => one.name === name);
    if (known === undefined) return [`unrecognized feature gate: ${name} (known: ${names()})`];
    if (!known.isLocked || value === known.default) return [];
    return [`cannot set feature gate ${name} to ${value}, feature is locked to ${known.default}`];
  });
  return faults.length === 0 ? undefined : faults.join('; ');
}

/** The state of every gate, given those that are set. */
export function effectiveFeatureGates(set: ReadonlyMap<string, boolean>): ReadonlyMap<string, boolean> {
  const all = { ALPHA: set.get('AllAlpha'), BETA: set.get('AllBeta'), GA: undefined };
  return new Map(
    featureGates.map((one) => [
      one.name,
      set.get(one.name) ?? (one.isLocked ? undefined : all[one.stage]) ?? one.default,
    ]),
  );
}

/** The stage of a gate as metrics spell it: empty for general availability, and for a gate that is not known. */
export function featureStageOf(name: string): 'ALPHA' | 'BETA' | '' {
  const stage = featureGates.find((one) => one.name === name)?.stage ?? 'GA';
  return stage === 'GA' ? '' : stage;
}

function names(): string {
  return featureGates.map(({ name }) => name).join(', ');
}
