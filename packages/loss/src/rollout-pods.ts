import { seconds } from '@switchyard/core';
import { type AppTiming, type RolloutShape, type RolloutStrategy, servingTime } from './rollout-setting.ts';

/** Times of one pod, in milliseconds after the rollout's start; may be infinite. */
export interface PodLife {
  readonly node: number;
  readonly readyAt: number;
  readonly deletedAt: number;
  /** Time from which it accepts no connections. */
  readonly endsAt: number;
}

export interface RolloutPods {
  readonly pods: readonly PodLife[];
  /** Time at which the last new pod is available and the last old one has ended. Infinite: the rollout cannot end. */
  readonly endsAt: number;
}

interface Pod {
  readonly node: number;
  readonly isOld: boolean;
  readonly readyAt: number;
  deletedAt: number;
}

/** The controllers act this long after what they wait for (20 to 40 ms were measured). */
const reaction: number = seconds(0.03);

/** Simulates the Deployment controller: when it creates and deletes pods, and on which nodes. */
export function rolloutPods(shape: RolloutShape, app: AppTiming): RolloutPods {
  const serving = servingTime(app);
  const most = shape.spread === 'perNode' ? Math.min(shape.replicas, shape.nodes) : shape.replicas;
  const pods = Array.from({ length: most }, (_, index): Pod => ({ ...old, node: index % shape.nodes }));
  const rollout = new Rollout({ ...shape, replicas: most }, pods, { startup: app.startup, serving });
  const endsAt = rollout.run();
  return {
    pods: pods.map(({ node, readyAt, deletedAt }) => ({ node, readyAt, deletedAt, endsAt: deletedAt + serving })),
    endsAt,
  };
}

const old = { isOld: true, readyAt: -Infinity, deletedAt: Infinity };

/** Simulation of one rollout, for one run. */
class Rollout {
  readonly #shape: RolloutShape;
  readonly #pods: Pod[];
  readonly #lasts: { readonly startup: number; readonly serving: number };
  readonly #strategy: RolloutStrategy;
  #now = 0;

  constructor(shape: RolloutShape, pods: Pod[], lasts: { readonly startup: number; readonly serving: number }) {
    this.#shape = shape;
    this.#pods = pods;
    this.#lasts = lasts;
    this.#strategy = shape.strategy;
  }

  /** Fills in the pods; returns when it is over. */
  run(): number {
    const { replicas } = this.#shape;
    // Each round handles at least one moment at which a pod becomes available or ends.
    for (let round = 0; round <= 4 * replicas + 4; round += 1) {
      while (this.#create() + this.#delete() > 0);
      const isDone = this.#active(false).length === replicas && this.#active(true).length === 0;
      const next = this.#nextMoment();
      if (next === undefined) return isDone ? this.#now : Infinity;
      this.#now = next;
    }
    return Infinity;
  }

  #active(isOld: boolean): readonly Pod[] {
    return this.#pods.filter((pod) => pod.isOld === isOld && pod.deletedAt === Infinity);
  }

  #create(): number {
    const { replicas, nodes } = this.#shape;
    const fresh = this.#active(false).length;
    const olds = this.#active(true).length;
    const surge = this.#strategy.kind === 'Recreate' ? 0 : this.#strategy.maxSurge;
    if (this.#strategy.kind === 'Recreate' && this.#pods.some((pod) => pod.isOld && this.#isThere(pod))) return 0;
    let created = 0;
    for (let room = Math.min(replicas + surge - olds - fresh, replicas - fresh); room > 0; room -= 1) {
      const node = this.#freeNode(nodes);
      if (node === undefined) break;
      this.#pods.push({ node, isOld: false, readyAt: this.#now + this.#lasts.startup, deletedAt: Infinity });
      created += 1;
    }
    return created;
  }

  #delete(): number {
    const olds = this.#active(true);
    const least =
      this.#shape.replicas - (this.#strategy.kind === 'Recreate' ? Infinity : this.#strategy.maxUnavailable);
    const available = olds.length + this.#active(false).filter((pod) => this.#availableAt(pod) <= this.#now).length;
    const count = Math.max(0, Math.min(olds.length, available - least));
    // A ReplicaSet deletes first where most pods of the Deployment are.
    const podsBeside = (pod: Pod): number =>
      this.#pods.filter((other) => other.node === pod.node && other.deletedAt === Infinity).length;
    for (const pod of olds.toSorted((a, b) => podsBeside(b) - podsBeside(a)).slice(0, count)) pod.deletedAt = this.#now;
    return count;
  }

  #availableAt({ readyAt }: Pod): number {
    return readyAt + this.#shape.minReady + reaction;
  }

  /** A pod takes its node's place until it has ended. */
  #isThere({ deletedAt }: Pod): boolean {
    return deletedAt === Infinity || deletedAt + this.#lasts.serving + reaction > this.#now;
  }

  #freeNode(nodes: number): number | undefined {
    const counts = Array.from({ length: nodes }, () => 0);
    for (const { node } of this.#pods.filter((pod) => this.#isThere(pod))) counts[node] = (counts[node] ?? 0) + 1;
    const fewest = Math.min(...counts);
    if (this.#shape.spread === 'perNode' && fewest > 0) return undefined;
    return counts.indexOf(fewest);
  }

  #nextMoment(): number | undefined {
    const moments = this.#pods.map((pod) =>
      pod.deletedAt === Infinity ? this.#availableAt(pod) : pod.deletedAt + this.#lasts.serving + reaction,
    );
    const later = moments.filter((moment) => moment > this.#now && moment < Infinity);
    return later.length === 0 ? undefined : Math.min(...later);
  }
}
