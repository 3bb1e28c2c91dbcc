import { type Clock, HostError, type Logger, type Millis, seconds } from '@switchyard/core';

/** Something that follows the kernel until it is aborted. */
export interface Follower {
  /** For the log. */
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

const pause: Millis = seconds(1);
/** What has run for so long was well again. */
const wellAfter: Millis = seconds(60);

/** Runs followers until aborted. One that fails begins again a second later; it is warned of when it was well before. */
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
