import type { EventObject, Pod } from '@switchyard/core/kubernetes';

/** State of a pod that should start. */
export type PodStanding =
  | { readonly kind: 'running' }
  /** `isHopeless`: waiting any longer will not help. */
  | { readonly kind: 'pending'; readonly why: string; readonly isHopeless: boolean }
  | { readonly kind: 'ended'; readonly exitCode: number | undefined; readonly why: string };

/** Reasons of a waiting container that only a change of the pod, or of the image's name, can end. */
const hopeless = new Set([
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
]);

/** Reads the state of a pod from its status; events add details to `why`. */
export function podStanding(pod: Pod, events: readonly EventObject[] = []): PodStanding {
  const { status } = pod;
  const container = status?.containerStatuses?.[0]?.state;
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') {
    const { exitCode, reason, message } = container?.terminated ?? {};
    const said = [status.reason, status.message, reason, message?.trim()].filter(isSaid);
    return { kind: 'ended', exitCode, why: said.join(': ') || 'it says no reason' };
  }
  if (status?.phase === 'Running' && (status.podIPs ?? []).length > 0) return { kind: 'running' };
  const waiting = container?.waiting;
  const condition = (status?.conditions ?? []).find(
    ({ status: value, message }) =>
      value === 'False' && isSaid(message) && !message.startsWith('containers with unready'),
  );
  const last = events.at(-1);
  const isWarned = last?.type === 'Warning' || waiting === undefined || waiting.reason === 'ContainerCreating';
  const said = [
    waiting === undefined ? undefined : [waiting.reason, waiting.message].filter(isSaid).join(': '),
    waiting === undefined ? condition?.message : undefined,
    isWarned ? last?.message : undefined,
  ].filter(isSaid);
  const why = [...new Set(said)].join('; ') || 'its node has not said anything yet';
  return { kind: 'pending', why, isHopeless: hopeless.has(waiting?.reason ?? '') };
}

function isSaid(text: string | undefined | null): text is string {
  return text !== undefined && text !== null && text !== '';
}
