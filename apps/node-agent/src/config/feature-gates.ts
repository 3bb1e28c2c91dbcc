import { type FeatureGate, type GateStage, type GateStageName, gateTable } from './gate-table.ts';
import { gatesOfOthers, otherReleaseGates } from './other-gates.ts';
import { kubernetesVersion } from './kubernetes-version.ts';

interface GateState extends Omit<FeatureGate, 'stages' | 'goneIn'>, Omit<GateStage, 'since'> {
  /** The release lacks the gate because its feature became permanent. */
  readonly isPermanent: boolean;
}

/**
 * The state of a gate in Kubernetes 1.`minor`, with Kubernetes' default. A gate that begins later has its first stage: the
 * agent obeys it as well. A gate that was removed is locked to its last default.
 */
export function gateStateIn(minor: number, { stages, goneIn, ...one }: FeatureGate): GateState {
  const { stage, default: on, isLocked } = stages.findLast(({ since }) => since <= minor) ?? stages[0];
  const isPermanent = goneIn !== undefined && goneIn <= minor;
  return { ...one, stage, default: on, isLocked: isLocked || isPermanent, isPermanent };
}

/** Gates of the emulated Kubernetes release, with the agent's defaults. */
const states: ReadonlyMap<string, GateState> = new Map(
  gateTable.map((one) => {
    const state = gateStateIn(kubernetesVersion.minor, one);
    return [one.name, { ...state, default: one.defaultHere ?? state.default }];
  }),
);

/** Every gate with a state, in the emulated Kubernetes release. Excludes permanent ones. */
export const featureGates: readonly GateState[] = [...states.values()].filter(({ isPermanent }) => !isPermanent);

const othersNames: ReadonlySet<string> = new Set([...gatesOfOthers, ...otherReleaseGates]);

/**
 * Gates as set that the agent does not obey, one sentence each. They are warnings, not errors: another Kubernetes minor
 * may allow them.
 */
export function gateWarnings(set: ReadonlyMap<string, boolean>): readonly string[] {
  return [...set].flatMap(([name, value]) => {
    const known = states.get(name);
    if (known !== undefined) return isAgainstLock(known, value) ? [lockText(known, value)] : [];
    if (othersNames.has(name)) return [];
    const close = nearestName(name, [...states.keys(), ...othersNames]);
    const hint = close === undefined ? 'this agent knows no such gate' : `did you mean ${close}?`;
    return [`unrecognized feature gate: ${name} (${hint})`];
  });
}

function isAgainstLock({ isLocked, default: on }: GateState, value: boolean): boolean {
  return isLocked && value !== on;
}

function lockText({ name, isPermanent, default: on }: GateState, value: boolean): string {
  if (isPermanent) return `cannot turn ${value ? 'on' : 'off'} feature gate ${name}: its feature is permanent`;
  return `cannot set feature gate ${name} to ${value}, feature is locked to ${on}`;
}

/**
 * Returns gates without effect: names by reason, of set gates and of those that `AllAlpha` and `AllBeta` change from their
 * default. Omits the gates of `gateWarnings`.
 */
export function idleGates(set: ReadonlyMap<string, boolean>): ReadonlyMap<string, readonly string[]> {
  const effective = effectiveFeatureGates(set);
  const turned = featureGates.filter(({ name, default: on }) => !set.has(name) && effective.get(name) !== on);
  const obeyed = [...set].filter(([name, value]) => {
    const known = states.get(name);
    return known === undefined ? othersNames.has(name) : !isAgainstLock(known, value);
  });
  const names = new Map<string, readonly string[]>();
  for (const name of [...obeyed.map(([name]) => name), ...turned.map(({ name }) => name)]) {
    const meaning = states.get(name)?.meaning ?? ofOthers;
    if (meaning.kind === 'none') names.set(meaning.why, [...(names.get(meaning.why) ?? []), name]);
  }
  return names;
}

const ofOthers: FeatureGate['meaning'] = { kind: 'none', why: 'other components of Kubernetes read it, no proxy does' };

/** The state of every gate, given those that are set. */
export function effectiveFeatureGates(set: ReadonlyMap<string, boolean>): ReadonlyMap<string, boolean> {
  const all: Readonly<Record<GateStageName, boolean | undefined>> = {
    ALPHA: set.get('AllAlpha'),
    BETA: set.get('AllBeta'),
    GA: undefined,
    DEPRECATED: undefined,
  };
  return new Map(
    featureGates.map((one) => [
      one.name,
      one.isLocked ? one.default : (set.get(one.name) ?? (one.isOurs ? undefined : all[one.stage]) ?? one.default),
    ]),
  );
}

/** The stage of a gate as metrics spell it: empty for general availability, and for a gate that is not known. */
export function featureStageOf(name: string): Exclude<GateStageName, 'GA'> | '' {
  const stage = states.get(name)?.stage ?? 'GA';
  return stage === 'GA' ? '' : stage;
}

/** Returns the name closest to `text`, ignoring case; undefined if none is close. */
function nearestName(text: string, names: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let least = Math.floor(text.length / 4) + 2; // more differences than a typing error has
  for (const name of names) {
    const distance = editDistance(text.toLowerCase(), name.toLowerCase());
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

/** Number of insertions, deletions and replacements that turn `a` into `b` (Levenshtein). */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [row, letter] of [...a].entries()) {
    const own = [row + 1];
    for (let at = 1; at <= b.length; at++) {
      const replaced = (above[at - 1] ?? 0) + (letter === b[at - 1] ? 0 : 1);
      own.push(Math.min(replaced, (above[at] ?? 0) + 1, (own[at - 1] ?? 0) + 1));
    }
    above = own;
  }
  return above[b.length] ?? 0;
}
