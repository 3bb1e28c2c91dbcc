import { readFileSync } from 'node:fs';
import type { Deployment, EndpointSlice, Pod } from '@switchyard/core/kubernetes';

interface EventOf<K extends string, T> {
  readonly atMs: number;
  readonly kind: K;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
}

/** One watch event of the recording. */
export type RecordedEvent =
  | EventOf<'Pod', Pod>
  | EventOf<'EndpointSlice', EndpointSlice>
  | EventOf<'Deployment', Deployment>;

/** A rolling update as the real controllers of Kubernetes 1.36.2 did it. */
export interface RecordedRollout {
  readonly replicas: number;
  /** Writes of other clients: kubectl, scheduler and kubelet. */
  readonly steps: readonly { readonly atMs: number; readonly step: string }[];
  /** By resourceVersion, across kinds. */
  readonly events: readonly RecordedEvent[];
}

/** The recording with that many replicas. */
export function readRollout(replicas: 1 | 2): RecordedRollout {
  const file = new URL(`../fixtures/rollouts/rollout-${replicas}.jsonl`, import.meta.url);
  const [head, ...events] = readFileSync(file, 'utf8').trim().split('\n');
  return { ...(JSON.parse(head ?? '{}') as RecordedRollout), events: events.map((line) => JSON.parse(line)) };
}
