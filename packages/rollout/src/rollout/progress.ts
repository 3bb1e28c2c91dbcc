import type { Millis } from '@switchyard/core';
import type { RequestRecord } from '../run-record.ts';

/** Told what happens while it happens. */
export interface RolloutProgress {
  step(text: string): void;
  /** The load has started; `oldPod` is who answers now. */
  loadStarted(at: Millis, oldPod: string): void;
  request(request: RequestRecord): void;
  loadEnded(): void;
}

/** Tells nobody. */
export const silentProgress: RolloutProgress = {
  step: () => undefined,
  loadStarted: () => undefined,
  request: () => undefined,
  loadEnded: () => undefined,
};
