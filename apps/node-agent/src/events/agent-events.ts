import { messageOf, type Millis, type NodeName, nodeSubject, type RecordedEvent } from '@switchyard/core';
import type { ConfigNote } from '../config/notes.ts';

/** As kube-proxy's, when it begins to work. */
export function startingEvent(nodeName: NodeName): RecordedEvent {
  return { type: 'Normal', reason: 'Starting', action: 'StartKubeProxy', regarding: nodeSubject(nodeName), note: '' };
}

/** Events for the notes on the configuration that have one. */
export function configEvents(nodeName: NodeName, notes: readonly ConfigNote[]): readonly RecordedEvent[] {
  return notes.flatMap(({ event }): readonly RecordedEvent[] => {
    if (event === undefined) return [];
    return [{ type: 'Warning', action: 'StartKubeProxy', regarding: nodeSubject(nodeName), ...event }];
  });
}

/** As kube-proxy's, when a server of its own cannot listen. */
export function failedServerEvent(
  nodeName: NodeName,
  reason: 'FailedToStartProxierHealthcheck' | 'FailedToStartMetricServer',
  error: unknown,
): RecordedEvent {
  const note = messageOf(error);
  return { type: 'Warning', reason, action: 'StartKubeProxy', regarding: nodeSubject(nodeName), note };
}

/** This node cannot run the mode of the changed configuration. */
export function modeRefusedEvent(nodeName: NodeName, error: unknown): RecordedEvent {
  const note = `the changed mode cannot run here, the old one stays in force: ${messageOf(error)}`;
  return {
    type: 'Warning',
    reason: 'FailedToChangeMode',
    action: 'ChangeMode',
    regarding: nodeSubject(nodeName),
    note,
  };
}

/** The API server was out of reach for `silence`, and is heard again. */
export function contactRestoredEvent(nodeName: NodeName, silence: Millis): RecordedEvent {
  return {
    type: 'Warning',
    reason: 'ApiServerContactRestored',
    action: 'Watch',
    regarding: nodeSubject(nodeName),
    note: `the API server was not heard for ${Math.round(silence / 1000)} s; Services were forwarded as before meanwhile`,
  };
}
