import { type Clock, type Millis, millis, seconds, systemClock } from '../base/time.ts';

/**
 * Real time, except that waits shorter than a minute are noted and cut to at most 2 ms: code that
 * backs off against a real server is tested in milliseconds, and what it meant to wait is asserted.
 */
export class RecordingClock implements Clock {
  /** Waits under a minute, in order. */
  readonly waits: number[] = [];

  now(): Millis {
    return systemClock.now();
  }

  monotonic(): Millis {
    return systemClock.monotonic();
  }

  sleep(duration: Millis, signal: AbortSignal): Promise<void> {
    if (duration >= seconds(60)) return systemClock.sleep(duration, signal);
    this.waits.push(duration);
    return systemClock.sleep(millis(Math.min(2, duration)), signal);
  }
}
