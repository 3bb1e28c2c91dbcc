import { type Clock, HostError, type Logger, type Millis, seconds } from '@switchyard/core';

/** A task that follows the kernel until it is aborted. */
export interface Follower {
  /** For the log. */
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

const pause: Millis = seconds(1);
/** Run time after which a follower counts as recovered. */
const wellAfter: Millis = seconds(60);

/** Runs followers until aborted. Restarts a failed one after a second, and logs a warning for the first failure after a recovery. */
export async function keepRunning(
  followers: readonly Follower[],
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(followers.map((one) => keepOne(one, { clock, logger }, signal)));
}

async function keepOne(
  { name, run }: Follower,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  let hasFailed = false;
  while (!signal.aborted) {
    const start = clock.monotonic();
    try {
      await run(signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof HostError)) throw error;
      if (clock.monotonic() - start >= wellAfter) hasFailed = false;
      const log = hasFailed ? logger.debug : logger.warn;
      log.call(logger, 'cannot follow the kernel; will be tried again every second', { what: name, error });
      hasFailed = true;
    }
    await clock.sleep(pause, signal).catch(() => undefined);
  }
}
