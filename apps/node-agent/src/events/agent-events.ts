import { messageOf, type Millis, type NodeName, nodeSubject, type RecordedEvent } from '@switchyard/core';
import type { ConfigNote } from '../config/notes.ts';

/** Creates a Warning on the Node, by default with kube-proxy's action. */
export function nodeWarning(
  nodeName: NodeName,
  reason: string,
  note: string,
  action = 'StartKubeProxy',
): RecordedEvent {
  return { type: 'Warning', reason, action, regarding: nodeSubject(nodeName), note };
}

/** Event of kube-proxy at its start. */
export function startingEvent(nodeName: NodeName): RecordedEvent {
  return { ...nodeWarning(nodeName, 'Starting', ''), type: 'Normal' };
}

/** Events for the notes on the configuration that have one. */
export function configEvents(nodeName: NodeName, notes: readonly ConfigNote[]): readonly RecordedEvent[] {
  return notes.flatMap(({ event }) => (event === undefined ? [] : [nodeWarning(nodeName, event.reason, event.note)]));
}

/** Event of kube-proxy for a server that cannot listen. */
export function failedServerEvent(
  nodeName: NodeName,
  reason: 'FailedToStartProxierHealthcheck' | 'FailedToStartMetricServer',
  error: unknown,
): RecordedEvent {
  return nodeWarning(nodeName, reason, messageOf(error));
}

/** Event for a changed configuration whose mode this node cannot run. */
export function modeRefusedEvent(nodeName: NodeName, error: unknown): RecordedEvent {
  const note = `the changed mode cannot run here, the old one stays in force: ${messageOf(error)}`;
  return nodeWarning(nodeName, 'FailedToChangeMode', note, 'ChangeMode');
}

/** Event for an API server that answers again after `silence`. */
export function contactRestoredEvent(nodeName: NodeName, silence: Millis): RecordedEvent {
  const note = `the API server was not heard for ${Math.round(silence / 1000)} s; Services were forwarded as before meanwhile`;
  return nodeWarning(nodeName, 'ApiServerContactRestored', note, 'Watch');
}
