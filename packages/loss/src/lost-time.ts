import type { ExplainedCause } from './loss-model.ts';
import type { Failing, NodeEndpoints } from './node-timeline.ts';
import { inOrder, stepReader, type Steps } from './steps.ts';

/** One node as the load balancer uses it. */
export interface UsedNode {
  readonly isUp: Steps<boolean>;
  /** UP, or UP until a moment ago: used while no node is UP. Undefined: the load balancer does not remember. */
  readonly isLastUp: Steps<boolean> | undefined;
  /** As a load balancer with fast drain knows them from EndpointSlices; `unknown` without it. */
  readonly endpoints: Steps<NodeEndpoints | 'unknown'>;
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
  const all = (steps: Steps<unknown> | undefined): readonly number[] => (steps?.changes ?? []).map(({ at }) => at);
  const times = inOrder(nodes.flatMap((node) => Object.values(node).flatMap(all)));
  const readers = nodes.map((node) => ({
    isUp: stepReader(node.isUp),
    isLastUp: node.isLastUp === undefined ? () => undefined : stepReader(node.isLastUp),
    endpoints: stepReader(node.endpoints),
    failing: stepReader(node.failing),
  }));
  const lost: Partial<Record<ExplainedCause, number>> = {};
  times.forEach((from, index) => {
    // After the last change either nothing is lost, or the rollout never ends, which `duration` reports.
    const duration = (times[index + 1] ?? from) - from;
    const states = readers.map((read) => ({
      isUp: read.isUp(from),
      isLastUp: read.isLastUp(from),
      endpoints: read.endpoints(from),
      failing: read.failing(from),
    }));
    const used = nodesInUse(states);
    if (!used.some(({ isUp }) => isUp) && failOpen !== undefined) {
      add(lost, 'noServerUp', duration * openShare(states, failOpen));
      return;
    }
    if (used.length === 0) add(lost, 'noServerUp', duration);
    for (const { failing } of used) {
      const cause = failing.by === 'app' ? 'appGone' : used.length === 1 ? 'droppedByNodeAlone' : 'droppedByNodeShared';
      add(lost, cause, (duration * failing.share) / used.length);
    }
  });
  return lost;
}

/** A node at one moment. */
interface NodeState {
  readonly isUp: boolean;
  readonly isLastUp: boolean | undefined;
  readonly endpoints: NodeEndpoints | 'unknown';
  readonly failing: Failing;
}

/** Those that get new connections: UP ones, at best with a ready endpoint; else those that were UP, or are sure to serve. None without an endpoint. */
function nodesInUse(states: readonly NodeState[]): readonly NodeState[] {
  const isAnyKnown = states.some(({ endpoints }) => endpoints === 'ready' || endpoints === 'terminating');
  const isAnyReady = states.some(({ endpoints }) => endpoints === 'ready');
  const candidates = isAnyKnown ? states.filter(({ endpoints }) => endpoints !== 'none') : states;
  const isServing = ({ endpoints }: NodeState): boolean => isAnyReady && endpoints === 'terminating';
  const up = candidates.filter(({ isUp }) => isUp);
  const preferred = up.filter((one) => !isServing(one));
  if (up.length > 0) return preferred.length > 0 ? preferred : up;
  return candidates.filter((one) => one.isLastUp !== undefined && (one.isLastUp || isServing(one)));
}

/** The share that is lost where all nodes are used. */
function openShare(states: readonly NodeState[], { others, areOthersDraining }: FailOpen): number {
  const staying = states.filter(({ endpoints }) => endpoints === 'ready' || endpoints === 'unknown');
  const asked = staying.length > 0 ? staying : states;
  const count = asked.length + (staying.length > 0 && areOthersDraining ? 0 : others);
  return 1 - asked.reduce((sum, { failing }) => sum + 1 - failing.share, 0) / count;
}

function add(lost: Partial<Record<ExplainedCause, number>>, cause: ExplainedCause, amount: number): void {
  if (amount > 0) lost[cause] = (lost[cause] ?? 0) + amount;
}
