import { isDeepStrictEqual } from 'node:util';
import { apiResources, type DaemonSet, type Node, type Pod, type PodSpec } from '@switchyard/core/kubernetes';
import { type Millis, millis } from '@switchyard/core';
import type { ControllerContext, ResourceWatch } from './context.ts';
import {
  isPodEnded,
  isPodReady,
  isPodTerminating,
  matchesLabels,
  nameOf,
  objectKey,
  type ReadySince,
  untilAvailable,
} from './facts.ts';
import { daemonLimits, type DaemonNode, type DaemonStep, planDaemonSet } from './daemon-set-plan.ts';
import { unlessZero } from './deployment-plan.ts';
import { deletePod, podFromTemplate, startOwnerController, templateHash } from './owned-pods.ts';
import { isTolerated } from './scheduler.ts';

/**
 * Starts the DaemonSet controller: a pod on every matching node, rolling updates by `maxUnavailable` or `maxSurge`.
 * It creates no ControllerRevisions; the `controller-revision-hash` label replaces them. The caller runs the watch.
 */
export function startDaemonSetController(
  context: ControllerContext,
  daemonSets: ResourceWatch<DaemonSet>,
  settleSlices: DaemonSetWork['settleSlices'],
): AsyncDisposable {
  const runner = startOwnerController(context, {
    kind: 'DaemonSet',
    resource: apiResources.daemonSets,
    owners: daemonSets,
    reconcile: async (daemonSet, pods, readySince, signal) => {
      const { items: nodes } = await context.api.list(apiResources.nodes, {}, signal);
      return reconcileDaemonSet({ daemonSet, pods, nodes, context, readySince, settleSlices }, signal);
    },
  });
  context.watches.nodes.subscribe(() => {
    for (const daemonSet of daemonSets.values()) runner.poke(objectKey(daemonSet));
  });
  return runner;
}

const revisionHashLabel = 'controller-revision-hash';

const automatic: NonNullable<PodSpec['tolerations']> = [
  ...['not-ready', 'unreachable'].map((name) => ({ ...toleration(name), effect: 'NoExecute' })),
  ...['disk-pressure', 'memory-pressure', 'pid-pressure', 'unschedulable'].map((name) => ({
    ...toleration(name),
    effect: 'NoSchedule',
  })),
];

/** Input of one reconcile: the DaemonSet, and the current lists of nodes and of its pods. */
interface DaemonSetWork {
  readonly daemonSet: DaemonSet;
  readonly nodes: readonly Node[];
  readonly pods: readonly Pod[];
  readonly context: ControllerContext;
  readonly readySince: ReadySince;
  /** Resolves when the EndpointSlices show the current state of `pods`. */
  readonly settleSlices: (pods: readonly Pod[]) => Promise<void>;
}

/**
 * Takes the due step and writes the status from before it. Its effect comes back as pod events, which cause the next
 * reconcile. Resolves with the delay until the next run.
 */
async function reconcileDaemonSet(work: DaemonSetWork, signal: AbortSignal): Promise<Millis | undefined> {
  const { daemonSet, context, readySince } = work;
  const hash = templateHash(daemonSet.spec?.template ?? { spec: { containers: [] } });
  const minReady = context.scale.of(daemonSet.spec?.minReadySeconds ?? 0);
  const available = { readySince, minReady, now: context.clock.now() };
  const nodes = daemonNodes(work, hash, (pod) => untilAvailable(pod, available) === 0);
  const wanted = nodes.filter(({ isWanted }) => isWanted).length;
  const isRolling = daemonSet.spec?.updateStrategy?.type !== 'OnDelete';
  await takeStep(planDaemonSet(nodes, daemonLimits(daemonSet, wanted), isRolling), { ...work, hash }, signal);
  const status = statusOf(daemonSet, nodes);
  if (!isDeepStrictEqual(status, daemonSet.status)) {
    await context.api.updateStatus(apiResources.daemonSets, { ...daemonSet, status }, signal);
  }
  const waits = work.pods.map((pod) => untilAvailable(pod, available) ?? 0).filter((wait) => wait > 0);
  return waits.length === 0 ? undefined : millis(Math.min(...waits) + 1);
}

function daemonNodes(
  { daemonSet, nodes, pods }: DaemonSetWork,
  hash: string,
  isAvailable: (pod: Pod) => boolean,
): readonly DaemonNode[] {
  const isUpdated = (pod: Pod): boolean => pod.metadata.labels?.[revisionHashLabel] === hash;
  // Creation times are whole seconds, too coarse on a small time scale: for equal times the old template comes first.
  const byAge = pods.toSorted(
    (a, b) => ageOf(a) - ageOf(b) || Number(isUpdated(a)) - Number(isUpdated(b)) || nameOf(a).localeCompare(nameOf(b)),
  );
  return nodes
    .toSorted((a, b) => nameOf(a).localeCompare(nameOf(b), 'en', { numeric: true }))
    .map((node) => ({
      name: nameOf(node),
      isWanted: isWantedOn(node, daemonSet.spec?.template.spec),
      pods: byAge
        .filter(({ spec }) => spec?.nodeName === nameOf(node))
        .map((pod) => ({
          name: nameOf(pod),
          isUpdated: isUpdated(pod),
          isTerminating: isPodTerminating(pod),
          isEnded: isPodEnded(pod),
          isReady: isPodReady(pod),
          isAvailable: isAvailable(pod),
        })),
    }));
}

/** Whether the DaemonSet wants a pod on the node. Includes cordoned nodes. */
function isWantedOn(node: Node, spec: PodSpec | undefined): boolean {
  if (!matchesLabels(spec?.nodeSelector ?? {}, node.metadata.labels)) return false;
  const tolerations = [...(spec?.tolerations ?? []), ...automatic];
  const keepsAway = (taint: Parameters<typeof isTolerated>[0]): boolean =>
    taint.effect !== 'PreferNoSchedule' && !isTolerated(taint, tolerations);
  return !(node.spec?.taints ?? []).some(keepsAway);
}

async function takeStep(
  step: DaemonStep,
  work: DaemonSetWork & { readonly hash: string },
  signal: AbortSignal,
): Promise<void> {
  const { context, pods } = work;
  for (const node of step.createOn) {
    await context.api.create(apiResources.pods, newPod(work, node), signal);
  }
  if (step.remove.length === 0) return;
  // A pod's successor is ready in the slices before the pod is marked terminating.
  await work.settleSlices(pods.filter((pod) => !isPodTerminating(pod)));
  for (const pod of pods) if (step.remove.includes(nameOf(pod))) await deletePod(pod, context.api, signal);
}

/** Bound to its node at once, where Kubernetes leaves that to the scheduler and a node affinity. */
function newPod({ daemonSet, hash, context }: DaemonSetWork & { readonly hash: string }, nodeName: string): Pod {
  const generateName = `${nameOf(daemonSet)}-`;
  const owner = { kind: 'DaemonSet', object: daemonSet, generateName, labels: { [revisionHashLabel]: hash } } as const;
  const pod = podFromTemplate(owner, daemonSet.spec?.template, context.random);
  const { containers = [], tolerations = [], ...spec } = pod.spec ?? {};
  return { ...pod, spec: { ...spec, containers, nodeName, tolerations: [...tolerations, ...automatic] } };
}

/** Counts the oldest pod of each node, terminating ones included: a rollout is complete when the old pods no longer exist. */
function statusOf(daemonSet: DaemonSet, nodes: readonly DaemonNode[]): NonNullable<DaemonSet['status']> {
  const wanted = nodes.filter(({ isWanted }) => isWanted);
  const oldest = wanted.flatMap(({ pods }) => pods.slice(0, 1));
  const counts = {
    wanted: wanted.length,
    current: oldest.length,
    misplaced: nodes.filter(({ isWanted, pods }) => !isWanted && pods.length > 0).length,
    ready: oldest.filter(({ isReady }) => isReady).length,
    available: oldest.filter(({ isAvailable }) => isAvailable).length,
    updated: oldest.filter(({ isUpdated }) => isUpdated).length,
  };
  return {
    currentNumberScheduled: counts.current,
    numberMisscheduled: counts.misplaced,
    desiredNumberScheduled: counts.wanted,
    numberReady: counts.ready,
    observedGeneration: daemonSet.metadata.generation ?? 0,
    ...unlessZero('updatedNumberScheduled', counts.updated),
    ...unlessZero('numberAvailable', counts.available),
    ...unlessZero('numberUnavailable', counts.wanted - counts.available),
  };
}

function toleration(name: string): { readonly key: string; readonly operator: string } {
  return { key: `node.kubernetes.io/${name}`, operator: 'Exists' };
}

function ageOf(pod: Pod): number {
  return Date.parse(pod.metadata.creationTimestamp ?? '1970-01-01T00:00:00Z');
}
