import type { Millis } from '@switchyard/core';
import type { RequestRecord } from '../run-record.ts';

/** Receives progress while a rollout runs. */
export interface RolloutProgress {
  step(text: string): void;
  /** The load has started; `oldPod` answers now. */
  loadStarted(at: Millis, oldPod: string): void;
  request(request: RequestRecord): void;
  loadEnded(): void;
}

/** Ignores all progress. */
export const silentProgress: RolloutProgress = {
  step: () => undefined,
  loadStarted: () => undefined,
  request: () => undefined,
  loadEnded: () => undefined,
};
