import { apiResources, type Pod } from '@switchyard/core/kubernetes';
import { findCondition, replaceCondition } from './conditions.ts';
import type { ControllerContext } from './context.ts';
import { KeyedRunner } from './keyed-runner.ts';
import { isPodActive } from './pod-facts.ts';
import { schedulePod } from './schedule-pod.ts';
import { apiTime } from './time-scale.ts';

/** Starts the scheduler: every pod without a node gets one, or a `PodScheduled` condition with the reason. */
export function startScheduler(context: ControllerContext): AsyncDisposable {
  const { pods, nodes } = context.watches;
  const runner = new KeyedRunner({
    name: 'scheduler',
    clock: context.clock,
    log: context.log,
    run: async (_key, signal) => {
      await scheduleAll(context, signal);
      return undefined;
    },
  });
  // One key: pods are placed one after the other, because each placement changes the next decision.
  const poke = (): void => {
    if ([...pods.values()].some(isWaiting)) runner.poke('all pods');
  };
  pods.subscribe(poke);
  nodes.subscribe(poke);
  return runner;
}

function isWaiting(pod: Pod): boolean {
  return pod.spec?.nodeName === undefined && isPodActive(pod);
}

async function scheduleAll(context: ControllerContext, signal: AbortSignal): Promise<void> {
  const { api } = context;
  const [nodes, listed] = await Promise.all([
    api.list(apiResources.nodes, {}, signal),
    api.list(apiResources.pods, {}, signal),
  ]);
  let pods = listed.items;
  for (const pod of pods.filter(isWaiting)) {
    const decision = schedulePod(pod, { nodes: nodes.items, pods });
    if (decision.status === 'unschedulable') {
      await sayUnschedulable(pod, decision.message, context, signal);
      continue;
    }
    const { namespace, name = '' } = pod.metadata;
    const body = { spec: { nodeName: decision.nodeName }, metadata: { uid: pod.metadata.uid } };
    const bound = await api.patch(apiResources.pods, { namespace, name }, { kind: 'merge', body }, signal);
    pods = pods.map((other) => (other === pod ? bound : other));
  }
}

async function sayUnschedulable(
  pod: Pod,
  message: string,
  { api, clock }: ControllerContext,
  signal: AbortSignal,
): Promise<void> {
  const current = findCondition(pod.status?.conditions, 'PodScheduled');
  if (current?.status === 'False' && current.message === message) return;
  const conditions = replaceCondition(pod.status?.conditions ?? [], {
    type: 'PodScheduled',
    status: 'False',
    reason: 'Unschedulable',
    message,
    lastProbeTime: null,
    lastTransitionTime: current?.lastTransitionTime ?? apiTime(clock.now()),
  });
  await api.updateStatus(apiResources.pods, { ...pod, status: { ...pod.status, conditions } }, signal);
}
