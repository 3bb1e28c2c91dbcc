import { HostError, millis, seconds } from '@switchyard/core';
import type { Pod } from '@switchyard/core/kubernetes';
import type { ForwardedPort } from '../access/forward-port.ts';
import { askGate, type GateAnswer } from '../access/gate.ts';
import type { CommandContext } from '../commands/context.ts';
import { addressesOf, isOwnedBy, isReady, type Move, nameOf, takeLabels } from './drain-plan.ts';

/** A pod that was replaced, and how long each step took, in milliseconds. */
export interface Moved {
  readonly pod: string;
  readonly by: readonly string[];
  readonly replaced: number;
  readonly gate: Pick<GateAnswer, 'waited' | 'open' | 'nodes'> | undefined;
}

export interface MoveParts extends Pick<CommandContext, 'kubectl' | 'clock'> {
  readonly gate: Pick<ForwardedPort, 'url'>;
  /** Longest wait for a replacement, and at the gate, in seconds. */
  readonly limit: number;
}

/** Time between two looks at replacements. */
const lookInterval = millis(200);

/**
 * Replaces a pod without a lost request: takes it from its ReplicaSet, which starts another one; waits until that serves on every node;
 * takes it from its Services; waits at the gate; deletes it. A pod with a hook is deleted before the gate, where the hook waits. It goes on
 * serving if a step fails: rejects with `HostError`, and another drain continues.
 */
export async function movePod(move: Move, parts: MoveParts, signal: AbortSignal): Promise<Moved> {
  const { pod, replicaSet, isTaken, hasHook, serviceLabels } = move;
  const { kubectl, clock, gate, limit } = parts;
  const begin = clock.now();
  const before = new Set((await podsOf(replicaSet, pod, parts, signal)).map(nameOf));
  if (!isTaken) await setLabels(pod, takeLabels(replicaSet), parts, signal);
  const ready = await untilReplaced(move, parts, signal);
  for (const one of ready) {
    const answer = await askGate(gate, { path: '/ready', addresses: addressesOf(one), seconds: limit }, signal);
    if (!answer.isSafe) throw stays(pod, `${nameOf(one)} in its place is not ready on all nodes`, answer);
  }
  const replaced = clock.now() - begin;
  const by = ready.map(nameOf).filter((name) => !before.has(name));
  let gateAnswer: GateAnswer | undefined;
  if (!hasHook) {
    await setLabels(pod, Object.fromEntries(serviceLabels.map((label) => [label, null])), parts, signal);
    gateAnswer = await askGate(gate, { path: '/drain', addresses: addressesOf(pod), seconds: limit }, signal);
    if (!gateAnswer.isSafe) throw stays(pod, 'it cannot be stopped yet', gateAnswer);
  }
  const { name = '', namespace } = pod.metadata;
  await kubectl.run(['delete', 'pod', name, `--namespace=${namespace}`, '--wait=false'], signal);
  return { pod: nameOf(pod), by, replaced, gate: gateAnswer };
}

function stays(pod: Pod, what: string, { reasons }: GateAnswer): HostError {
  return new HostError('drain.move', `pod ${nameOf(pod)} goes on: ${what}: ${reasons.slice(0, 3).join('; ')}`);
}

async function setLabels(
  { metadata: { name = '', namespace } }: Pod,
  labels: Readonly<Record<string, string | null>>,
  { kubectl }: MoveParts,
  signal: AbortSignal,
): Promise<void> {
  const patch = JSON.stringify({ metadata: { labels } });
  await kubectl.run(['patch', 'pod', name, `--namespace=${namespace}`, '--type=merge', `--patch=${patch}`], signal);
}

interface ReplicaSet {
  readonly spec: { readonly replicas?: number };
}

/** The ready pods of the ReplicaSet, as soon as they are as many as it wants. */
async function untilReplaced(
  { pod, replicaSet }: Move,
  parts: MoveParts,
  signal: AbortSignal,
): Promise<readonly Pod[]> {
  const { kubectl, clock, limit } = parts;
  const end = clock.now() + seconds(limit);
  const { namespace } = pod.metadata;
  for (;;) {
    const text = await kubectl.run(
      ['get', 'replicaset', replicaSet, `--namespace=${namespace}`, '--output=json'],
      signal,
    );
    const { replicas = 1 } = (JSON.parse(text) as ReplicaSet).spec;
    const ready = (await podsOf(replicaSet, pod, parts, signal)).filter(isReady);
    if (ready.length >= replicas) return ready;
    if (clock.now() >= end) {
      const what = `${ready.length} of ${replicas} pods of ReplicaSet ${replicaSet} are ready after ${limit} s`;
      throw new HostError(
        'drain.replace',
        `pod ${nameOf(pod)} goes on: ${what}; see kubectl describe replicaset ${replicaSet}`,
      );
    }
    await clock.sleep(lookInterval, signal);
  }
}

/** Pods that the ReplicaSet owns, without the one that is moved. */
async function podsOf(
  replicaSet: string,
  { metadata: { name, namespace } }: Pod,
  { kubectl }: MoveParts,
  signal: AbortSignal,
): Promise<readonly Pod[]> {
  const text = await kubectl.run(['get', 'pods', `--namespace=${namespace}`, '--output=json'], signal);
  const { items } = JSON.parse(text) as { readonly items: readonly Pod[] };
  return items.filter((one) => one.metadata.name !== name && isOwnedBy(one, replicaSet));
}
