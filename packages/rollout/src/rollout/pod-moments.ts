import type { WorkloadEvent } from '@switchyard/lab';
import type { PodMoment } from '../run-record.ts';

const phases: Readonly<Partial<Record<WorkloadEvent['kind'], PodMoment['phase']>>> = {
  podCreated: 'created',
  processStarted: 'started',
  podReady: 'ready',
  deletionTimestampSet: 'deleting',
  sigtermSent: 'sigterm',
  acceptingStopped: 'ended',
  processEnded: 'ended',
  objectGone: 'gone',
};

/** The phases of one app's pods, in order of time. A pod's end is when it stops accepting, or else its process's end. */
export function podMoments(events: readonly WorkloadEvent[], app: string): readonly PodMoment[] {
  const nodes = new Map<string, string>();
  for (const event of events) if ('node' in event) nodes.set(event.pod, event.node);
  const moments: PodMoment[] = [];
  const ended = new Set<string>();
  for (const event of events) {
    const phase = phases[event.kind];
    if (phase === undefined || !event.pod.startsWith(`${app}-`)) continue;
    if (phase === 'ended' && ended.has(event.pod)) continue;
    if (phase === 'ended') ended.add(event.pod);
    moments.push({ at: event.at, pod: event.pod, node: nodes.get(event.pod) ?? '', phase });
  }
  return moments.sort((a, b) => a.at - b.at);
}
