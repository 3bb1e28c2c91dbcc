import type { Clock } from '@switchyard/core';
import type { Probe } from '@switchyard/core/kubernetes';
import type { TimeScale } from '../time-scale.ts';

/** Counts a probe's results against its thresholds. */
export interface ReadinessTracker {
  readonly isReady: boolean;
  /** Returns whether `isReady` changed. */
  record(isSuccess: boolean): boolean;
}

/** Not ready before the first success. Thresholds default to 3 failures and 1 success. */
export function createReadinessTracker(probe: Probe): ReadinessTracker {
  const needed = { true: probe.successThreshold ?? 1, false: probe.failureThreshold ?? 3 };
  let isReady = false;
  let last: boolean | undefined;
  let inARow = 0;
  return {
    get isReady() {
      return isReady;
    },
    record: (isSuccess) => {
      inARow = isSuccess === last ? inARow + 1 : 1;
      last = isSuccess;
      if (isSuccess === isReady || inARow < needed[`${isSuccess}`]) return false;
      isReady = isSuccess;
      return true;
    },
  };
}

/** Options of `followReadiness`. */
export interface ReadinessOptions {
  readonly probe: Probe;
  /** One attempt; a rejection counts as a failure. */
  readonly attempt: (signal: AbortSignal) => Promise<boolean>;
  readonly onChange: (isReady: boolean) => void;
  readonly scale: TimeScale;
  readonly clock: Clock;
}

/** Probes until aborted, then ends without an error. The first attempt comes after `initialDelaySeconds`, at once if it is 0. */
export async function followReadiness(options: ReadinessOptions, signal: AbortSignal): Promise<void> {
  const { probe, attempt, onChange, scale, clock } = options;
  const tracker = createReadinessTracker(probe);
  const pause = (seconds: number): Promise<void> => clock.sleep(scale.of(seconds), signal).catch(() => undefined);
  await pause(probe.initialDelaySeconds ?? 0);
  while (!signal.aborted) {
    const isSuccess = await attempt(signal).catch(() => false);
    if (signal.aborted) return;
    if (tracker.record(isSuccess)) onChange(tracker.isReady);
    await pause(probe.periodSeconds ?? 10);
  }
}
