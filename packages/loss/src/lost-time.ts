import type { ExplainedCause } from './loss-model.ts';
import type { Failing } from './node-timeline.ts';
import { inOrder, stepReader, type Steps } from './steps.ts';

/** One node as the load balancer uses it. */
export interface UsedNode {
  readonly isUp: Steps<boolean>;
  /** UP, or UP until a moment ago: used while no node is UP. */
  readonly isLastUp: Steps<boolean>;
  /** Gets nothing while another node is UP. */
  readonly isDraining: Steps<boolean>;
  readonly failing: Steps<Failing>;
}

/** Milliseconds of full traffic that are lost, by cause; causes without a loss are left out. */
export type LostTime = Readonly<Partial<Record<ExplainedCause, number>>>;

/** Load balancer that uses all nodes while none is UP: the given nodes, and `others`, which never have a pod and drop. */
export interface FailOpen {
  readonly others: number;
  /** Whether the load balancer knows that they have no pod, and avoids them while another one has. */
  readonly areOthersDraining: boolean;
}

/** Adds up what is lost over all time. Traffic is spread evenly over the nodes in use. `failOpen` undefined: only `isLastUp` counts. */
export function lostTime(nodes: readonly UsedNode[], failOpen: FailOpen | undefined): LostTime {
  const all = (steps: Steps<unknown>): readonly number[] => steps.changes.map(({ at }) => at);
  const times = inOrder(nodes.flatMap((node) => Object.values(node).flatMap(all)));
  const readers = nodes.map((node) => ({
    isUp: stepReader(node.isUp),
    isLastUp: stepReader(node.isLastUp),
    isDraining: stepReader(node.isDraining),
    failing: stepReader(node.failing),
  }));
  const lost: Partial<Record<ExplainedCause, number>> = {};
  times.forEach((from, index) => {
    // After the last change either nothing is lost, or the rollout never ends, which `duration` reports.
    const duration = (times[index + 1] ?? from) - from;
    const states = readers.map((read) => ({
      isUp: read.isUp(from),
      isLastUp: read.isLastUp(from),
      isDraining: read.isDraining(from),
      failing: read.failing(from),
    }));
    const up = states.filter(({ isUp }) => isUp);
    const preferred = up.filter(({ isDraining }) => !isDraining);
    const usable = preferred.length > 0 ? preferred : up;
    if (usable.length === 0 && failOpen !== undefined) {
      add(lost, 'noServerUp', duration * openShare(states, failOpen));
      return;
    }
    const used = usable.length > 0 ? usable : states.filter(({ isLastUp }) => isLastUp);
    if (used.length === 0) add(lost, 'noServerUp', duration);
    for (const { failing } of used) {
      const cause = failing.by === 'app' ? 'appGone' : used.length === 1 ? 'droppedByNodeAlone' : 'droppedByNodeShared';
      add(lost, cause, (duration * failing.share) / used.length);
    }
  });
  return lost;
}

/** The share that is lost where all nodes are used. */
function openShare(
  states: readonly { readonly isDraining: boolean; readonly failing: Failing }[],
  { others, areOthersDraining }: FailOpen,
): number {
  const staying = states.filter(({ isDraining }) => !isDraining);
  const asked = staying.length > 0 ? staying : states;
  const count = asked.length + (staying.length > 0 && areOthersDraining ? 0 : others);
  return 1 - asked.reduce((sum, { failing }) => sum + 1 - failing.share, 0) / count;
}

function add(lost: Partial<Record<ExplainedCause, number>>, cause: ExplainedCause, amount: number): void {
  if (amount > 0) lost[cause] = (lost[cause] ?? 0) + amount;
}
