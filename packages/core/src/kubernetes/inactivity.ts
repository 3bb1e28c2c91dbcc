import type { Clock, Millis } from '../time.ts';

/** Notices that nothing has happened for too long. */
export interface InactivityTimer extends Disposable {
  /** Aborts after `limit` without a `touch`. */
  readonly signal: AbortSignal;
  /** Something happened. Cheap: called for every chunk. */
  touch(): void;
  /** Counts from now on with another limit. */
  restart(limit: Millis): void;
}

/** The reason of an inactivity timer's abort. */
export const inactive: unique symbol = Symbol('inactive');

/** Starts counting at once; disposal stops it. */
export function startInactivityTimer(clock: Clock, limit: Millis): InactivityTimer {
  const expired = new AbortController();
  let current = limit;
  let last = clock.monotonic();
  let stop = new AbortController();

  const run = async (stopped: AbortSignal): Promise<void> => {
    // Wakes once per limit, not once per touch.
    for (let left = current as number; left > 0; left = last + current - clock.monotonic()) {
      await clock.sleep(left as Millis, stopped);
    }
    expired.abort(inactive);
  };
  const start = (): void => {
    run(stop.signal).catch(() => undefined); // rejects only when stopped
  };
  start();
  return {
    signal: expired.signal,
    touch: () => {
      last = clock.monotonic();
    },
    restart: (next) => {
      stop.abort();
      stop = new AbortController();
      current = next;
      start();
    },
    [Symbol.dispose]: () => stop.abort(),
  };
}
