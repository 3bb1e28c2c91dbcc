import type { EventSubject, NodeName, RecordedEvent } from '@switchyard/core';

/** Our Node as the subject of an event. */
export function nodeSubject(nodeName: NodeName): EventSubject {
  return { kind: 'Node', namespace: '', name: nodeName, uid: '' };
}

/** As kube-proxy's, when it begins to work. */
export function startingEvent(nodeName: NodeName): RecordedEvent {
  return { type: 'Normal', reason: 'Starting', action: 'StartKubeProxy', regarding: nodeSubject(nodeName), note: '' };
}
