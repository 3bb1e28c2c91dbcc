import { type Millis, millis } from '@switchyard/core';
import type { Span } from './check-timing.ts';
import { checkedNode, heldFor } from './checked-node.ts';
import type { ExplainedCause } from './loss-model.ts';
import { type FailOpen, type LostTime, lostTime, type UsedNode } from './lost-time.ts';
import { nodeTimeline } from './node-timeline.ts';
import { type PodLife, rolloutPods } from './rollout-pods.ts';
import type { RolloutSetting } from './rollout-setting.ts';
import type { Steps } from './steps.ts';
import { spreadPoints } from './spread-points.ts';

/** Predicted loss of a rollout, as time in which all traffic is lost: a second at half of the traffic counts as half a second. Whole milliseconds. */
export interface RolloutPrediction {
  /** Mean over all phases that the health checks can have. */
  readonly expected: Millis;
  /** The least; 0 with a worst above it means: sometimes. */
  readonly best: Millis;
  readonly worst: Millis;
  /** Parts of `expected`, each rounded; causes without a loss are left out. */
  readonly byCause: Readonly<Partial<Record<ExplainedCause, Millis>>>;
  /** Probability of any loss, 0 to 1. */
  readonly probability: number;
  /** Probability of a loss because no node is UP for a while, 0 to 1. */
  readonly noneUp: number;
  /** Duration of the rollout; undefined: it cannot end, because no node may take the next pod. */
  readonly duration: Millis | undefined;
}

/** Unknown delays of one rollout: each 0 (earliest) to 1 (latest). */
interface Chance {
  readonly ready: number;
  readonly terminating: number;
  readonly phase: (node: number) => number;
}

/** Milliseconds. Smaller losses are rounding: predictions are whole milliseconds. */
const nothing = 0.5;
const justBefore = 1 - 1e-9;

/**
 * Predicts what one rollout of a Deployment loses behind a health-checking load balancer. Nothing is drawn at random: the mean is
 * taken over evenly spread phases of the checks and delays of the proxies; best and worst also over their extremes, which makes
 * them exact while one old and one new node are involved at a time. All 76 measured rollouts lie between them.
 */
export function predictRollout(setting: RolloutSetting): RolloutPrediction {
  const { endsAt, lostWith, corners, samples } = simulate(setting);
  const losses = samples.map(lostWith);
  const extremes = corners.map((chance) => total(lostWith(chance)));
  const totals = losses.map(total);
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const shareOf = (amounts: readonly number[]): number =>
    amounts.filter((amount) => amount > nothing).length / amounts.length;
  return {
    expected: rounded(mean(totals)),
    best: rounded(Math.min(...totals, ...extremes)),
    worst: rounded(Math.max(...totals, ...extremes)),
    byCause: meanByCause(losses),
    probability: shareOf(totals),
    noneUp: shareOf(losses.map(({ noServerUp = 0 }) => noServerUp)),
    duration: endsAt === Infinity ? undefined : rounded(endsAt),
  };
}

/** Whether a rollout may lose anything, or cannot end: whether `worst` is above 0, or `duration` undefined. Quicker than the whole prediction. */
export function mayLose(setting: RolloutSetting): boolean {
  const { endsAt, lostWith, corners, samples } = simulate(setting);
  const isLost = (chance: Chance): boolean => rounded(total(lostWith(chance))) > 0;
  return endsAt === Infinity || corners.some(isLost) || samples.some(isLost);
}

interface Simulation {
  /** Infinite: the rollout cannot end. */
  readonly endsAt: number;
  readonly lostWith: (chance: Chance) => LostTime;
  readonly corners: readonly Chance[];
  readonly samples: readonly Chance[];
}

function simulate(setting: RolloutSetting): Simulation {
  const { pods, endsAt } = rolloutPods(setting.shape, setting.app);
  const groups = setting.policy === 'Cluster' ? [pods] : perNode(pods, setting.shape.nodes);
  const failOpen = failOpenOf(setting, groups.length);
  const points = spreadPoints(groups.length + 2, sampleCount(pods.length));
  return {
    endsAt,
    lostWith: (chance) => lostTime(usedNodes(groups, setting, chance), failOpen),
    corners: cornerChances(groups),
    samples: points.map(([ready = 0, terminating = 0, ...phases]) => ({
      ready,
      terminating,
      phase: (node) => phases[node] ?? 0,
    })),
  };
}

function usedNodes(groups: readonly (readonly PodLife[])[], setting: RolloutSetting, chance: Chance): UsedNode[] {
  const { check, proxy, fastDrain, policy } = setting;
  const delays = {
    ready: within(proxy.noticesReady, chance.ready),
    terminating: within(proxy.noticesTerminating, chance.terminating),
    terminatingFallback: proxy.terminatingFallback,
  };
  return groups.map((pods, node) => {
    const { isHealthy, failing, endpoints } = nodeTimeline(pods, delays);
    const isUp = policy === 'Cluster' ? always(true) : checkedNode(isHealthy, check, chance.phase(node));
    return {
      isUp,
      isLastUp: check.whenNoneUp === 'lastUp' ? heldFor(isUp, check.lastUpFor) : undefined,
      endpoints: fastDrain === undefined ? always('unknown') : later(endpoints, within(fastDrain, chance.terminating)),
      failing,
    };
  });
}

function failOpenOf({ policy, check, shape, fastDrain }: RolloutSetting, nodesWithPods: number): FailOpen | undefined {
  if (policy === 'Cluster' || check.whenNoneUp !== 'all') return undefined;
  return { others: Math.max(0, shape.nodes - nodesWithPods), areOthersDraining: fastDrain !== undefined };
}

/** The earliest and the latest of everything, for nodes that lose their pods and for those that get some. */
function cornerChances(groups: readonly (readonly PodLife[])[]): readonly Chance[] {
  const isOld = groups.map((pods) => pods.some(({ readyAt }) => readyAt === -Infinity));
  const ends = [0, 1] as const;
  const phases = [0, justBefore] as const;
  return ends.flatMap((ready) =>
    ends.flatMap((terminating) =>
      phases.flatMap((old) =>
        phases.map((fresh): Chance => ({ ready, terminating, phase: (node) => (isOld[node] === true ? old : fresh) })),
      ),
    ),
  );
}

function perNode(pods: readonly PodLife[], nodes: number): readonly (readonly PodLife[])[] {
  const groups = Array.from({ length: nodes }, (_, index) => pods.filter(({ node }) => node === index));
  return groups.filter((group) => group.length > 0);
}

/** Many phases for the usual few pods; less for hundreds, where they average out anyway. */
function sampleCount(pods: number): number {
  return Math.max(32, Math.min(1024, Math.floor(20_000 / pods)));
}

function always<T>(initial: T): Steps<T> {
  return { initial, changes: [] };
}

function later<T>({ initial, changes }: Steps<T>, delay: number): Steps<T> {
  return { initial, changes: changes.map(({ at, value }) => ({ at: at + delay, value })) };
}

function within({ shortest, longest }: Span, share: number): number {
  return shortest + share * (longest - shortest);
}

function total(lost: LostTime): number {
  return Object.values(lost).reduce((sum, one) => sum + one, 0);
}

function rounded(value: number): Millis {
  return millis(Math.round(value));
}

function meanByCause(losses: readonly LostTime[]): Readonly<Partial<Record<ExplainedCause, Millis>>> {
  const sums: Partial<Record<ExplainedCause, number>> = {};
  for (const lost of losses) {
    for (const [cause, amount] of entries(lost)) sums[cause] = (sums[cause] ?? 0) + amount / losses.length;
  }
  const reported = entries(sums).filter(([, amount]) => amount >= nothing);
  return Object.fromEntries(reported.map(([cause, amount]) => [cause, rounded(amount)]));
}

function entries(lost: LostTime): readonly (readonly [ExplainedCause, number])[] {
  return Object.entries(lost) as [ExplainedCause, number][]; // Object.entries forgets the keys' type
}
