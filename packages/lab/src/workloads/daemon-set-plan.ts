import type { DaemonSet } from '@switchyard/core/kubernetes';
import { type RolloutLimits, scaledCount } from './deployment-plan.ts';

/** One pod of a DaemonSet on one node, with the fields that a rollout reads. Deleted pods are not listed. */
export interface DaemonPod {
  readonly name: string;
  /** Created from the current template. */
  readonly isUpdated: boolean;
  readonly isTerminating: boolean;
  /** Its containers have ended and will not restart: phase Succeeded or Failed. */
  readonly isEnded: boolean;
  readonly isReady: boolean;
  /** Ready for `minReadySeconds`. */
  readonly isAvailable: boolean;
}

/** A node and its pods of a DaemonSet, oldest first. */
export interface DaemonNode {
  readonly name: string;
  /** Whether the DaemonSet wants a pod here. */
  readonly isWanted: boolean;
  readonly pods: readonly DaemonPod[];
}

/** Next step: names of pods to delete and nodes on which to create a pod. */
export interface DaemonStep {
  readonly remove: readonly string[];
  readonly createOn: readonly string[];
}

/**
 * The limits of a RollingUpdate in nodes. Percentages are of the nodes that want a pod and are rounded up, both of them;
 * when both become 0, unavailable is 1.
 */
export function daemonLimits({ spec }: DaemonSet, wanted: number): RolloutLimits {
  const rolling = spec?.updateStrategy?.rollingUpdate;
  const surge = scaledCount(rolling?.maxSurge ?? 0, wanted, Math.ceil);
  const unavailable = scaledCount(rolling?.maxUnavailable ?? 1, wanted, Math.ceil);
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/**
 * Returns the next step of a DaemonSet, like that of Kubernetes' controller. A node without a pod gets one; a terminating pod
 * counts, so without surge its successor is created only after its deletion. A rolling update
 * without surge deletes old pods while fewer than `unavailable` nodes lack an available one; with surge (KEP-1591) it creates a
 * second pod on up to `surge` nodes and deletes the old one there when the new one is available.
 */
export function planDaemonSet(nodes: readonly DaemonNode[], limits: RolloutLimits, isRolling: boolean): DaemonStep {
  const manage = planNodes(nodes, limits.surge > 0);
  const wanted = nodes.filter(({ isWanted }) => isWanted);
  const roll = !isRolling ? nothing : limits.surge > 0 ? planSurge(wanted, limits) : planReplacement(wanted, limits);
  return {
    remove: [...new Set([...manage.remove, ...roll.remove])],
    createOn: [...new Set([...manage.createOn, ...roll.createOn])],
  };
}

const nothing: DaemonStep = { remove: [], createOn: [] };

/** At most one pod per node, or an old and a new one while a surge waits for the new one. */
function planNodes(nodes: readonly DaemonNode[], allowsSurge: boolean): DaemonStep {
  const remove: string[] = [];
  const createOn: string[] = [];
  for (const { name, isWanted, pods } of nodes) {
    const staying = pods.filter(({ isTerminating }) => !isTerminating);
    if (!isWanted) remove.push(...namesOf(staying));
    else if (pods.length === 0) createOn.push(name);
    else remove.push(...namesOf(staying.filter(({ isEnded }) => isEnded)), ...surplusOf(staying, allowsSurge));
  }
  return { remove, createOn };
}

function surplusOf(staying: readonly DaemonPod[], allowsSurge: boolean): readonly string[] {
  const running = staying.filter(({ isEnded }) => !isEnded);
  if (!allowsSurge) return namesOf(running.slice(1));
  const [old, ...olds] = running.filter(({ isUpdated }) => !isUpdated);
  const [fresh, ...freshs] = running.filter(({ isUpdated }) => isUpdated);
  const isReplaced = old !== undefined && fresh !== undefined && (!old.isReady || fresh.isAvailable);
  return namesOf([...olds, ...freshs, ...(isReplaced ? [old] : [])]);
}

function planReplacement(nodes: readonly DaemonNode[], { unavailable }: RolloutLimits): DaemonStep {
  const remove: string[] = [];
  const candidates: string[] = [];
  let lacking = 0;
  for (const node of nodes) {
    const { old, fresh } = pairOf(node);
    if (fresh !== undefined && old === undefined) lacking += fresh.isAvailable ? 0 : 1;
    else if (old === undefined || fresh !== undefined) lacking += 1;
    else if (old.isAvailable) candidates.push(old.name);
    else remove.push(old.name);
  }
  return { remove: [...remove, ...candidates.slice(0, Math.max(0, unavailable - lacking))], createOn: [] };
}

function planSurge(nodes: readonly DaemonNode[], { surge }: RolloutLimits): DaemonStep {
  const remove: string[] = [];
  const createOn: string[] = [];
  const candidates: string[] = [];
  let surged = 0;
  for (const node of nodes) {
    const { old, fresh } = pairOf(node);
    if (old === undefined) continue;
    if (fresh === undefined) (old.isAvailable ? candidates : createOn).push(node.name);
    else if (fresh.isAvailable) remove.push(old.name);
    else surged += 1;
  }
  return { remove, createOn: [...createOn, ...candidates.slice(0, Math.max(0, surge - surged))] };
}

function pairOf({ pods }: DaemonNode): { readonly old: DaemonPod | undefined; readonly fresh: DaemonPod | undefined } {
  const staying = pods.filter(({ isTerminating }) => !isTerminating);
  return { old: staying.find(({ isUpdated }) => !isUpdated), fresh: staying.find(({ isUpdated }) => isUpdated) };
}

function namesOf(pods: readonly DaemonPod[]): readonly string[] {
  return pods.map(({ name }) => name);
}
