import { DataplaneError, type EventRecorder } from '@switchyard/core';
import { type AppFailure, writeTerminationMessage } from '@switchyard/host';
import type { ClusterPlace } from '../config.ts';
import { nodeWarning } from './agent-events.ts';

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

/** Where kubelet puts the file unless the pod's manifest names another. */
const defaultTerminationLog = '/dev/termination-log';

/** The container's termination message file. `SWITCHYARD_TERMINATION_LOG` names the manifest's `terminationMessagePath`. */
export function terminationLogOf(env: Readonly<Record<string, string | undefined>>): string {
  return env['SWITCHYARD_TERMINATION_LOG'] ?? defaultTerminationLog;
}

/**
 * Reports why the agent ends where operators look: the termination message of its container, and a Warning Event of its Node.
 * Creates no Event for a restart with another configuration, nor with manifests as source, where Events are log lines. Never
 * rejects.
 */
export async function reportFailure({ error, text }: AppFailure, channels: FailureChannels): Promise<void> {
  const { place, terminationLog, openEvents, hasForwarded } = channels;
  writeTerminationMessage(terminationLog, text);
  if (place === undefined || place.source.kind === 'manifests' || isWantedRestart(error)) return;
  try {
    await using events = await openEvents(place);
    events.record(nodeWarning(place.nodeName, hasForwarded ? 'SwitchyardFailed' : 'SwitchyardStartFailed', text));
  } catch {
    // The API server cannot be reached; the log and the termination message say the same.
  }
}

function isWantedRestart(error: unknown): boolean {
  return error instanceof DataplaneError && error.code === 'config.changed';
}
