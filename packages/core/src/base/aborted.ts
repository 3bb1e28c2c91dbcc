import { requireSignal } from './argument.ts';

/** Resolves when the signal aborts; at once when it has. Throws `UsageError` for what is no signal. */
export function aborted(signal: AbortSignal): Promise<void> {
  requireSignal('aborted: signal', signal);
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
