import {
  messageOf,
  type Millis,
  type NodeName,
  nodeSubject,
  type RecordedEvent,
  DataplaneError,
  type EventRecorder,
} from '@switchyard/core';
import type { ConfigNote } from '../config/notes.ts';
import { type AppFailure, writeTerminationMessage } from '@switchyard/host';
import type { ClusterPlace } from '../config.ts';

/** Creates a Warning on the Node, by default with kube-proxy's action. */
export function nodeWarning(
  nodeName: NodeName,
  reason: string,
  note: string,
  action = 'StartKubeProxy',
): RecordedEvent {
  return { type: 'Warning', reason, action, regarding: nodeSubject(nodeName), note };
}

/** Events for the notes on the configuration that have one. */
export function configEvents(nodeName: NodeName, notes: readonly ConfigNote[]): readonly RecordedEvent[] {
  return notes.flatMap(({ event }) => (event === undefined ? [] : [nodeWarning(nodeName, event.reason, event.note)]));
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

/** Channels by which this process reports why it ends. */
export interface FailureChannels {
  /** The file that kubelet made for the container. */
  readonly terminationLog: string;
  /** The cluster and the Node; undefined if unknown, or for commands, which report only by their exit. */
  readonly place: ClusterPlace | undefined;
  /** Opens the Events of a cluster; disposing sends them, within a few seconds. */
  readonly openEvents: (place: ClusterPlace) => Promise<EventRecorder & AsyncDisposable>;
  /** Whether this process had written the node's rules before. */
  readonly hasForwarded: boolean;
}

/** The container's termination message file: kubelet's, or the manifest's `terminationMessagePath` in `SWITCHYARD_TERMINATION_LOG`. */
export function terminationLogOf(env: Readonly<Record<string, string | undefined>>): string {
  return env['SWITCHYARD_TERMINATION_LOG'] ?? '/dev/termination-log';
}

/**
 * Reports why the agent ends where operators look: the termination message of its container, and a Warning Event of its Node.
 * Creates no Event for a restart with another configuration, nor with manifests as source, where Events are log lines. Never
 * rejects.
 */
export async function reportFailure({ error, text }: AppFailure, channels: FailureChannels): Promise<void> {
  const { place, terminationLog, openEvents, hasForwarded } = channels;
  writeTerminationMessage(terminationLog, text);
  const isWantedRestart = error instanceof DataplaneError && error.code === 'config.changed';
  if (place === undefined || place.source.kind === 'manifests' || isWantedRestart) return;
  try {
    await using events = await openEvents(place);
    events.record(nodeWarning(place.nodeName, hasForwarded ? 'SwitchyardFailed' : 'SwitchyardStartFailed', text));
  } catch {
    // The API server cannot be reached; the log and the termination message say the same.
  }
}
