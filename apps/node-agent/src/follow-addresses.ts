import { type Clock, HostError, type Logger, seconds } from '@switchyard/core';

/** Source of changed interface addresses. */
export interface AddressHost {
  readonly clock: Clock;
  readonly logger: Logger;
  /**
   * Yields whenever addresses of this machine's interfaces may have changed, until aborted. Rejects and throws
   * `HostError` when it cannot detect changes.
   */
  readonly addressChanges: (signal: AbortSignal) => Promise<AsyncIterableIterator<void>>;
}

const retryInterval = seconds(30);

/**
 * Calls `onChange` whenever interface addresses may have changed, and whenever changes may have been missed. Resolves
 * when aborted. If the machine cannot detect changes, `onChange` is called twice a minute instead: it must be cheap.
 */
export async function followAddresses(
  host: AddressHost,
  onChange: () => Promise<unknown>,
  signal: AbortSignal,
): Promise<void> {
  const { clock, logger } = host;
  let hasFailed = false;
  while (!signal.aborted) {
    try {
      const changes = await host.addressChanges(signal);
      while ((await changes.next()).done !== true) await onChange();
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof HostError)) throw error;
      if (!hasFailed) logger.warn('address changes are detected late', { error, retryMs: retryInterval });
      hasFailed = true;
    }
    await clock.sleep(retryInterval, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (!signal.aborted) await onChange();
  }
}
